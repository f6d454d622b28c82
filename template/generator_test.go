package template

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sequential yields 0, 1, 2 … 255, 0, 1 and so on.
type sequential struct{ next byte }

func (s *sequential) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = s.next
		s.next++
	}
	return len(b), nil
}

func entropyOf(source *sequential) *entropy {
	block := make([]byte, 16)
	return &entropy{source: source, block: block, next: len(block)}
}

func TestParseClass(t *testing.T) {
	const lower, upper, ten = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"

	for name, tc := range map[string]struct {
		class       string
		want        string
		wantIgnored string
		wantError   string
	}{
		"letters and digits stand for themselves":                {class: "cab21", want: "12abc"},
		"a character counts once":                                {class: "aabba-b", want: "ab"},
		"a range runs from its first to its last character":      {class: "b-e", want: "bcde"},
		"ranges follow each other":                               {class: "a-cX-Z7-9", want: "789XYZabc"},
		"ranges follow single characters":                        {class: "xyz0-3", want: "0123xyz"},
		"ranges run on from lower case to upper case and digits": {class: "y-B8-9", want: "89AByz"},
		"a range from lower case to digits holds upper case":     {class: "z-0", want: "0" + upper + "z"},
		`\w is letters, digits and the underscore`:               {class: `\w`, want: ten + upper + "_" + lower},
		`\d is digits`:                                 {class: `\d`, want: ten},
		`\a is letters and digits`:                     {class: `\a`, want: ten + upper + lower},
		`\A is punctuation`:                            {class: `\A`, want: "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"},
		"classes stand beside characters":              {class: `x\d`, want: ten + "x"},
		"a hyphen at the end stands for nothing":       {class: "a-z-", want: lower, wantIgnored: "-"},
		"a hyphen at the beginning stands for nothing": {class: "-ab", want: "ab", wantIgnored: "-"},
		"another backslash stands for nothing":         {class: `\xy`, want: "xy", wantIgnored: `\`},
		"a range that runs backwards is an error":      {class: "z-a", wantError: "z-a is not a range"},
		"a range from upper to lower case is an error": {class: "A-z", wantError: "A-z is not a range"},
		"a range to a backslash is an error":           {class: `a-\d`, wantError: `a-\ is not a range`},
		"nothing but hyphens is an error":              {class: "-", wantError: "[-] stands for no character"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ignored, err := parseClass(tc.class)
			if tc.wantError != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tc.wantError) {
					t.Errorf("got %v, want an error that begins with %q", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want || ignored != tc.wantIgnored {
				t.Errorf("got %q, ignoring %q; want %q, ignoring %q", got, ignored, tc.want, tc.wantIgnored)
			}
		})
	}
}

func TestGenerate(t *testing.T) {
	for name, tc := range map[string]struct {
		from string
		want string
	}{
		"text around an expression stays":                  {from: "vm-[a-d]{3}.x", want: "vm-abc.x"},
		"expressions go from left to right":                {from: "[a-d]{2}[0-9]{3}", want: "ab234"},
		"an expression without a length is text":           {from: "[a-d][a-d]{1}", want: "[a-d]a"},
		"a length without an expression is text":           {from: "{3}[a-d]{1}", want: "{3}a"},
		"characters that no expression takes make it text": {from: "[!]{3}[a-d]{1}[a_b]{2}", want: "[!]{3}a[a_b]{2}"},
		"brackets nest as text":                            {from: "[[a-d]{2}]{3}", want: "[ab]{3}"},
		"a reference is text":                              {from: "${NAME}-[a-d]{1}", want: "${NAME}-a"},
		"a length may have leading zeros":                  {from: "[a-d]{003}", want: "abc"},
		"an alphabet of one needs no luck":                 {from: "[x]{4}", want: "xxxx"},
	} {
		t.Run(name, func(t *testing.T) {
			g, _, err := parseGenerator(tc.from)
			if err != nil {
				t.Fatal(err)
			}
			got, err := g.append(nil, entropyOf(&sequential{}))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestGeneratedTextIsNeverAnExpression(t *testing.T) {
	// \A and \a contain all special characters of expressions, and generated text is not expanded again.
	g, _, err := parseGenerator(`[\A\a]{255}[\A\a]{255}`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := g.append(nil, entropyOf(&sequential{}))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2*255 {
		t.Errorf("got %d characters, want %d", len(got), 2*255)
	}
}

func TestGeneratedCharactersAreDistributedUniformly(t *testing.T) {
	// Of every 256 different bytes, each character takes the same number. This holds for each size of alphabet, whether it
	// divides 256 or not.
	for n := 1; n <= len(rangeOrder)+len(punctuation); n++ {
		random := entropyOf(&sequential{})
		counts := make([]int, n)
		per := 256 / n
		for range per * n {
			i, err := random.below(n)
			if err != nil {
				t.Fatal(err)
			}
			counts[i]++
		}
		for i, count := range counts {
			if count != per {
				t.Errorf("alphabet of %d: character %d was drawn %d times, want %d", n, i, count, per)
			}
		}
	}
}

func TestABrokenSourceOfRandomBytesIsNoticed(t *testing.T) {
	block := make([]byte, 8)
	stuck := entropy{source: stuckAt255{}, block: block, next: len(block)}
	if _, err := stuck.below(10); err == nil || !strings.Contains(err.Error(), "unusable") {
		t.Errorf("got error %v, want one that says the bytes are unusable", err)
	}
	short := entropy{source: bytes.NewReader([]byte{1, 2}), block: block, next: len(block)}
	if _, err := short.below(10); err == nil {
		t.Error("got no error from a source that has run out")
	}
}

type stuckAt255 struct{}

func (stuckAt255) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 255
	}
	return len(b), nil
}

// FuzzGenerate verifies that every text accepted as a generator makes values of exactly the promised form.
func FuzzGenerate(f *testing.F) {
	for _, from := range []string{
		"fedora-[a-z0-9]{16}", "[a-z0-9]{4}-[a-z0-9]{4}-[a-z0-9]{4}", `[\w]{10}`, `[\d]{8}`, `[\a]{12}`, `[\A]{255}`, `[a-zA-Z\d]{1}`,
		"[0-1]{8}", "0x[A-F0-9]{4}", "[a-z]{0}", "[a-z]{256}", "[a-z]{abc}", "[z-a]{1}", "[invalid", "[[a]{1}]{2}", "[-]{1}", `[a-\]{1}`, "${A}[é]{1}",
	} {
		f.Add(from, byte(0))
	}
	f.Fuzz(func(t *testing.T, from string, seed byte) {
		g, _, err := parseGenerator(from)
		if err != nil {
			return
		}
		got, err := g.append(nil, entropyOf(&sequential{next: seed}))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != g.size() {
			t.Errorf("made %d bytes, want %d", len(got), g.size())
		}
		rest := string(got)
		for _, p := range g {
			size := p.length
			if size == 0 {
				size = len(p.text)
			}
			part := rest[:size]
			rest = rest[size:]
			if p.length == 0 && part != p.text || p.length > 0 && strings.Trim(part, p.text) != "" {
				t.Errorf("made %q of %+v", part, p)
			}
		}
		// The text without the expressions is the literal text.
		var literal strings.Builder
		for _, p := range g {
			if p.length == 0 {
				literal.WriteString(p.text)
			}
		}
		published := regexp.MustCompile(`\[([a-zA-Z0-9\-\\]+)\](\{(\w+)\})`)
		if diff := cmp.Diff(published.ReplaceAllString(from, ""), literal.String()); diff != "" {
			t.Errorf("text around the expressions (-want +got):\n%s", diff)
		}
	})
}
