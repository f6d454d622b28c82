package report

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// Write replaces the section of a Markdown document between
//
//	<!-- results of NAME: begin -->
//	<!-- results of NAME: end -->
//
// and leaves everything else unchanged. Both markers must exist once, each on a line of its own.
func Write(path string, section Section) error {
	before, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the document of the results: %w", err)
	}
	after, err := replaced(string(before), section)
	if err != nil {
		return fmt.Errorf("writing results into %s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(after), 0o644); err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	return nil
}

func replaced(document string, section Section) (string, error) {
	begin := fmt.Sprintf("<!-- results of %s: begin -->\n", section.Name)
	end := fmt.Sprintf("<!-- results of %s: end -->\n", section.Name)
	for _, marker := range []string{begin, end} {
		if n := strings.Count(document, marker); n != 1 {
			return "", fmt.Errorf("the line %q stands there %d times, not once", strings.TrimSpace(marker), n)
		}
	}
	head, rest, _ := strings.Cut(document, begin)
	_, tail, found := strings.Cut(rest, end)
	if !found {
		return "", fmt.Errorf("the line %q stands before its beginning", strings.TrimSpace(end))
	}
	var results bytes.Buffer
	section.Markdown(&results)
	return head + begin + results.String() + end + tail, nil
}
