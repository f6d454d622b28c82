package stencilctl

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Golden compares texts with files that are committed.
type Golden struct {
	// Folder is where the files are.
	Folder string
	// Update has them written instead.
	Update *bool
	// Scrub removes what differs in each run. Optional.
	Scrub func(string) string
}

// UpdateFlag registers -update for a package of tests.
func UpdateFlag() *bool {
	return flag.Bool("update", false, "write the golden files")
}

// Compare holds what a command printed against the file of that name. On a terminal styles are written as <1> for ESC [ 1 m,
// so that the file can be read.
func (g Golden) Compare(t *testing.T, name string, c Command, got Result) {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "$ stencilctl %s\n%s", strings.TrimSpace(c.Line+" "+strings.Join(c.Arguments, " ")), got.Output)
	if got.Problems != "" {
		fmt.Fprintf(&text, "--- standard error\n%s", got.Problems)
	}
	fmt.Fprintf(&text, "--- exit code %d\n", got.Code)
	found := styles.Replace(text.String())
	if g.Scrub != nil {
		found = g.Scrub(found)
	}
	path := filepath.Join(g.Folder, strings.Map(inFileName, name)+".txt")
	if *g.Update {
		if err := os.MkdirAll(g.Folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(found), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; -update writes it", err)
	}
	if diff := cmp.Diff(string(want), found); diff != "" {
		t.Errorf("%s (-want +got), write it with -update:\n%s", path, diff)
	}
}

// styles are those that stencilctl has.
var styles = strings.NewReplacer("\x1b[0m", "<0>", "\x1b[1m", "<1>", "\x1b[2m", "<2>", "\x1b[31m", "<31>", "\x1b[32m", "<32>", "\x1b[33m", "<33>", "\x1b[36m", "<36>")

func inFileName(r rune) rune {
	switch r {
	case ' ':
		return '-'
	case ',':
		return -1
	}
	return r
}
