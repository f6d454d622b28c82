package excerpt_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vmstencil/stencil/internal/excerpt"
)

func TestOf(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		limit      int
		want       string
	}{
		{"a text that fits is whole", "abcdef", 6, "abcdef"},
		{"a longer one ends with the mark, which counts", "abcdefg", 6, "abc…"},
		{"no character is cut in two", "aäöü", 6, "aä…"},
		{"where only the mark fits", "abcdef", 3, "…"},
		{"where not even the mark fits", "abcdef", 2, ""},
		{"nothing", "", 0, ""},
		{"what is no UTF-8 is cut as well", strings.Repeat("\x80", 9), 6, "…"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := excerpt.Of(tc.text, tc.limit)
			if got != tc.want || len(got) > tc.limit {
				t.Errorf("got %q, want %q of at most %d bytes", got, tc.want, tc.limit)
			}
			if utf8.ValidString(tc.text) && !utf8.ValidString(got) {
				t.Errorf("%q is no UTF-8", got)
			}
		})
	}
}
