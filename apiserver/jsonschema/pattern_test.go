package jsonschema

import (
	"regexp"
	"strings"
	"testing"
)

func TestPattern(t *testing.T) {
	for re2, want := range map[string]string{
		`[a-z]{8,}`:                    `^[a-z]{8,}$`,
		`u1\.(small|large)`:            `^u1\.(?:small|large)$`,
		`a|b`:                          `^[ab]$`,
		`ab|cd`:                        `^(?:ab|cd)$`,
		`a||b`:                         `^(?:a|(?:)|b)$`,
		``:                             `^(?:)$`,
		`^a$`:                          `^^a$$`,
		`\Aa\z`:                        `^^a$$`,
		`(?i)ab1`:                      `^[Aa][Bb]1$`,
		`(?i)k`:                        `^[Kk\x{212A}]$`,
		`[[:alpha:]]+`:                 `^[A-Za-z]+$`,
		`[^a]`:                         `^[^a]$`,
		`[^\n\t -/]*`:                  `^[^\x09\x0A -/]*$`,
		`\d{1,3}(\.\d{1,3}){3}`:        `^[0-9]{1,3}(?:\.[0-9]{1,3}){3}$`,
		`a\-b_\@/`:                     `^a-b_@\/$`,
		`[\[\]\\^-]`:                   `^[\-\[-\^]$`,
		`.`:                            `^[^\n]$`,
		`(?s).`:                        `^[\s\S]$`,
		`\s\S`:                         `^[\x09\x0A\x0C\x0D ][^\x09\x0A\x0C\x0D ]$`,
		`\bx\B`:                        `^\bx\B$`,
		`(?:ab)*c+?d??`:                `^(?:ab)*c+d?$`,
		`(?i)u1\.[[:digit:]]`:          `^[Uu]1\.[0-9]$`,
		`a{,2}`:                        `^a\{,2\}$`,
		`(?P<year>[0-9]{4})`:           `^(?:[0-9]{4})$`,
		`(a)(b)?`:                      `^ab?$`,
		`[\x00-\x{10FFFF}]`:            `^[\s\S]$`,
		`[^\x00-\x{10FFFF}]`:           "",
		`(?m)^a`:                       "",
		`[a-\x{DFFF}]`:                 "",
		`(`:                            "",
		"[\u00e9\u2028\U0001F600]":     "^[\u00e9\u2028\U0001F600]$",
		`((ab|c){2}){3}`:               `^(?:(?:ab|c){2}){3}$`,
		`(?i:a)b`:                      `^[Aa]b$`,
		`[a-zA-Z0-9_.-]+@example\.com`: `^[\-.0-9A-Z_a-z]+@example\.com$`,
	} {
		want = strings.ReplaceAll(want, `\x{212A}`, "\u212a")
		got, ok := Pattern(re2)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %t; want %q", re2, got, ok, want)
		}
	}
}

// texts are matched with the pattern of RE2 and its translation.
var texts = []string{"", "a", "A", "b", "ab", "aB", "abab", "a\n", "\n", "k", "K", "\u212a", "-", "]", "^", "é", "\u2028", "😀", "10.0.0.1", "12", "x y", "\t", "a{,2}", "u1.small", "u1xsmall", strings.Repeat("a", 9)}

func FuzzPattern(f *testing.F) {
	for _, seed := range []string{`[a-z]{8,}`, `u1\.(small|large)`, `(?i)k|[^a]`, `(?s).*`, `\w+\s?`, `[[:alpha:]]+`, `()|a`, `[\W\d]`, `(?U)a+?`} {
		f.Add(seed, "web-1")
	}
	f.Fuzz(func(t *testing.T, re2, text string) {
		translated, ok := Pattern(re2)
		original, err := regexp.Compile(`^(?:` + re2 + `)$`)
		// A long one may repeat so much that its matches take minutes; templates and approvals bound that.
		if !ok || err != nil || len(re2) > 24 {
			return
		}
		same, err := regexp.Compile(translated)
		if err != nil {
			// RE2 bounds the repetitions of both, and counts them after it has simplified the original.
			if strings.Contains(err.Error(), "invalid repeat") || strings.Contains(err.Error(), "too large") {
				return
			}
			t.Fatalf("%q becomes %q: %v", re2, translated, err)
		}
		for _, each := range append(texts, text) {
			if original.MatchString(each) != same.MatchString(each) {
				t.Errorf("%q becomes %q, which answers %t for %q", re2, translated, same.MatchString(each), each)
			}
		}
	})
}
