package ovf_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vmstencil/stencil/ovf"
)

var update = flag.Bool("update", false, "write the golden files anew")

func descriptors(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.ovf")
	if err != nil || len(files) < 9 {
		t.Fatalf("found %d descriptors: %v", len(files), err)
	}
	return files
}

// corpus returns the descriptors in the styles of many exporters, whose expectations the package conversion compares. Those that are rejected for a
// required section are left out.
func corpus(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/corpus/*.ovf")
	if err != nil || len(files) < 40 {
		t.Fatalf("found %d descriptors: %v", len(files), err)
	}
	return slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "-required.ovf") })
}

func decodeFile(t testing.TB, file string) *ovf.Envelope {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := ovf.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return envelope
}

// TestDescriptorsOfAllStylesAreRead compares each descriptor in testdata with what is read from it.
func TestDescriptorsOfAllStylesAreRead(t *testing.T) {
	for _, file := range descriptors(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			got, err := json.MarshalIndent(decodeFile(t, file), "", " ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			golden := strings.TrimSuffix(file, ".ovf") + ".golden.json"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
		})
	}
}

// equalEnvelopes compares what Encode writes.
var equalEnvelopes = cmp.Options{
	cmpopts.IgnoreFields(ovf.Envelope{}, "Version", "Warnings"), cmpopts.IgnoreFields(ovf.Item{}, "Line"), cmpopts.IgnoreFields(ovf.Disk{}, "Interface"), cmpopts.IgnoreUnexported(ovf.Element{}), cmpopts.EquateEmpty(),
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Space" }, cmp.Comparer(func(a, b string) bool { return format1(a) == format1(b) })),
}

// format1 returns the namespace of OVF 1 for that of OVF 2.
func format1(space string) string {
	return strings.Replace(space, "ovf/envelope/2", "ovf/envelope/1", 1)
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	for _, file := range append(descriptors(t), corpus(t)...) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			before := decodeFile(t, file)
			var written, again bytes.Buffer
			if err := ovf.Encode(&written, before); err != nil {
				t.Fatal(err)
			}
			after, err := ovf.Decode(bytes.NewReader(written.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			for i := range before.Systems {
				// Nested collections become one, and none if there is one system.
				if len(before.Systems) == 1 {
					before.Systems[i].Collections = nil
				} else {
					before.Systems[i].Collections = before.Systems[i].Collections[:1]
				}
				if before.Systems[i].Info == "" {
					// The format requires one.
					before.Systems[i].Info = after.Systems[i].Info
				}
				for j := range before.Systems[i].Hardware.Items {
					if item := &before.Systems[i].Hardware.Items[j]; item.Name == "" {
						item.Name = after.Systems[i].Hardware.Items[j].Name
					}
				}
			}
			if diff := cmp.Diff(before, after, equalEnvelopes); diff != "" {
				t.Errorf("after a round trip (-before +after):\n%s\n%s", diff, written.String())
			}
			if err := ovf.Encode(&again, after); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(written.String(), again.String()); diff != "" {
				t.Errorf("written a second time (-first +second):\n%s", diff)
			}
		})
	}
}
