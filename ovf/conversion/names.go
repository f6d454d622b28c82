package conversion

import (
	"fmt"
	"slices"
	"strings"
)

// Lengths of names, in bytes.
const (
	// maxName leaves room for suffixes in the 63 characters of a label.
	maxName = 40
	// maxParameter is the length of the name of an annotation, in which the value of a parameter is given.
	maxParameter = 63
)

// label makes a DNS label (RFC 1123) from any text.
func label(text, otherwise string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
		if b.Len() == maxName {
			break
		}
	}
	if name := strings.Trim(b.String(), "-"); name != "" {
		return name
	}
	return otherwise
}

// parameterName makes the name of a parameter from any text.
func parameterName(text string) string {
	var b strings.Builder
	for _, r := range strings.ToUpper(text) {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "_") {
			b.WriteByte('_')
		}
		if b.Len() == maxParameter-4 {
			break
		}
	}
	if name := strings.Trim(b.String(), "_"); name != "" {
		return name
	}
	return "PARAMETER"
}

// unique appends a number to a name that is taken.
func unique(name, separator string, taken []string) string {
	result := name
	for n := 2; slices.Contains(taken, result); n++ {
		result = fmt.Sprintf("%s%s%d", name, separator, n)
	}
	return result
}
