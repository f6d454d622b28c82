package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/testfile"
)

var section = Section{
	Name:    "engine",
	Context: "somewhere",
	Tables: []Table{{
		Title:   "Work",
		Columns: []string{"what", "time"},
		Rows:    [][]string{{"compile", "9.00 µs"}, {"render", "10.0 µs"}},
	}},
	Targets: []Target{{What: "render", Wanted: "≤ 5 µs", Measured: "10.0 µs"}},
	Notes:   []string{"Take care."},
}

const markdown = `Measured somewhere.

**Work**

| what    |    time |
| ------- | ------: |
| compile | 9.00 µs |
| render  | 10.0 µs |

**Targets**

| target | wanted | measured | met |
| ------ | -----: | -------: | --: |
| render | ≤ 5 µs |  10.0 µs |  NO |

Take care.
`

const text = `
== engine: somewhere

Work
  what        time
  compile  9.00 µs
  render   10.0 µs

Targets
  target  wanted  measured  met
  render  ≤ 5 µs   10.0 µs   NO

note: Take care.
`

func TestSectionIsPrintedAlignedByCharactersAndNotByBytes(t *testing.T) {
	for name, tc := range map[string]struct {
		got  func(*strings.Builder)
		want string
	}{
		"for a terminal":   {got: func(b *strings.Builder) { section.Text(b) }, want: text},
		"for the document": {got: func(b *strings.Builder) { section.Markdown(b) }, want: markdown},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			tc.got(&got)
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	const begin, end = "<!-- results of engine: begin -->\n", "<!-- results of engine: end -->\n"
	for name, tc := range map[string]struct {
		document  string
		want      string
		wantError string
	}{
		"what stood between the markers is replaced and the prose stays": {
			document: "# Title\n" + begin + "old\n" + end + "prose\n",
			want:     "# Title\n" + begin + markdown + end + "prose\n",
		},
		"another benchmark's results stay": {
			document: "<!-- results of cache: begin -->\nx\n<!-- results of cache: end -->\n" + begin + end,
			want:     "<!-- results of cache: begin -->\nx\n<!-- results of cache: end -->\n" + begin + markdown + end,
		},
		"a document without the markers is refused":       {document: "# Title\n", wantError: "0 times"},
		"a marker that stands there twice is refused":     {document: begin + begin + end, wantError: "2 times"},
		"markers in the wrong order are refused":          {document: end + begin, wantError: "before its beginning"},
		"an end that is missing is refused, nothing cut":  {document: begin + "old\n", wantError: "0 times"},
		"a marker inside a line of prose does not count ": {document: "see <!-- results of engine: begin --> here\n", wantError: "0 times"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "performance.md")
			testfile.Write(t, path, tc.document)
			err := Write(path, section)
			got, readError := os.ReadFile(path)
			if readError != nil {
				t.Fatal(readError)
			}
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("error %v, want one that says %q", err, tc.wantError)
				}
				tc.want = tc.document
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnits(t *testing.T) {
	for got, want := range map[string]string{
		Milliseconds(1_234_567):      "1.23 ms",
		SignedMilliseconds(-500_000): "-0.50 ms",
		SignedMilliseconds(20_000):   "+0.02 ms",
		Microseconds(9_876):          "9.88 µs",
		Microseconds(123_456):        "123 µs",
		MiB(150 << 20):               "150.0 MiB",
		Seconds(4_500_000_000):       "4.50 s",
		Times(0.998):                 "0.998×",
		Times(12.34):                 "12.3×",
		Times(1234.5):                "1234×",
		Times(0):                     "0.00×",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
