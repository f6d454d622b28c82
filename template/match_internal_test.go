package template

import (
	"crypto/rand"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// TestQuantitiesAreReadInNoTime reads short texts of huge values, which would fill a disk in decimal notation.
func TestQuantitiesAreReadInNoTime(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want bool
	}{
		"a plain number":                          {"4", true},
		"a binary unit":                           {"1.5Gi", true},
		"a decimal unit":                          {"500m", true},
		"exa":                                     {"1E", true},
		"an exponent":                             {"1e3", true},
		"an exponent with a sign":                 {"1E-3", true},
		"the largest exponent that is read":       {"1e999", true},
		"an exponent that would take minutes":     {"1e-100000000", false},
		"an exponent that would take years":       {"1e999999999", false},
		"more digits than anything needs":         {strings.Repeat("9", 65), false},
		"white space":                             {" 1", false},
		"nothing":                                 {"", false},
		"something that is no quantity":           {"much", false},
		"a unit that there is not":                {"1Zi", false},
		"a number with a unit between its digits": {"1G1", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isQuantity(tc.text); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestSpellingsHaveTheSameValue(t *testing.T) {
	for _, text := range []string{"1Gi", "1024Mi", "1.5Gi", "0", "-2Ki", "1", "0.1", "3n", "1e18", "9223372036854775807", "123456789m", "1e999"} {
		want := resource.MustParse(text)
		all := spellings(text)
		for _, spelling := range all {
			got, err := resource.ParseQuantity(spelling)
			if err != nil || got.Cmp(want) != 0 {
				t.Errorf("%s spelt %s: %v, %v", text, spelling, got.String(), err)
			}
		}
		const least = 3
		if len(all) < least && text != "1e999" {
			t.Errorf("%s: got %q, want more", text, all)
		}
	}
	for text, want := range map[string]string{"1Gi": "1024Mi", "1536Mi": "1.5Gi", "2000": "2k", "0.5": "500m"} {
		if all := spellings(text); !slices.Contains(all, want) {
			t.Errorf("%s: got %q, want %s among them", text, all, want)
		}
	}
}

// TestGeneratorsMakeWhatTheyMake verifies that makes accepts a generator's own values, and no others.
func TestGeneratorsMakeWhatTheyMake(t *testing.T) {
	for _, from := range []string{"vm-[a-z0-9]{16}", "[a-c]{1}", `[\w]{255}`, `x[\A]{3}[\d]{2}y[A-F]{4}z`, "[0-9]{4}-[0-9]{4}"} {
		g, _, err := parseGenerator(from)
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			made, err := g.append(nil, &entropy{source: rand.Reader, block: make([]byte, 256), next: 256})
			if err != nil {
				t.Fatal(err)
			}
			value := string(made)
			if !g.makes(value) {
				t.Errorf("%s makes %q, and denies it", from, value)
			}
			for name, other := range map[string]string{
				"longer": value + "a", "shorter": value[1:], "another letter": value[:len(value)-1] + "é", "another beginning": "\x00" + value[1:], "empty": "",
			} {
				if g.makes(other) {
					t.Errorf("%s does not make %q, which is %s", from, other, name)
				}
			}
		}
	}
}
