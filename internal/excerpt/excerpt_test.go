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

func TestList(t *testing.T) {
	for name, tc := range map[string]struct {
		entries []string
		noun    string
		want    string
	}{
		"none":                     {},
		"as many as the limit":     {[]string{"a", "b"}, "fields", "a, b"},
		"more":                     {[]string{"a", "b", "c", "d"}, "fields", "a, b and 2 more fields"},
		"more, of what is evident": {[]string{"a", "b", "c"}, "", "a, b and 1 more"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := excerpt.List(tc.entries, 2, tc.noun); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSentences(t *testing.T) {
	for want, texts := range map[string][]string{"": nil, "a": {"a"}, "a; b": {"a", "b"}, "a; b; and 2 more": {"a", "b", "c", "d"}} {
		if got := excerpt.Sentences(texts, 2); got != want {
			t.Errorf("Sentences(%q, 2) = %q, want %q", texts, got, want)
		}
	}
}
