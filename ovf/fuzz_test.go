package ovf_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/ovf"
)

// FuzzDecode checks that what is accepted can be written, is read again as the same, and that every system selects items in every configuration.
func FuzzDecode(f *testing.F) {
	for _, file := range append(descriptors(f), corpus(f)...) {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		envelope, err := ovf.Decode(bytes.NewReader(raw))
		if err != nil {
			return
		}
		for i := range envelope.Systems {
			for _, c := range append(envelope.Configurations, ovf.Configuration{}) {
				for _, item := range envelope.Systems[i].Hardware.Select(c.ID) {
					_, _ = item.Resource()
				}
			}
		}
		var first, second bytes.Buffer
		if err := ovf.Encode(&first, envelope); err != nil {
			// Some texts become longer when they are written, or invalid as an attribute.
			return
		}
		again, err := ovf.Decode(bytes.NewReader(first.Bytes()))
		if err != nil {
			t.Fatalf("%v in\n%s", err, first.String())
		}
		if err := ovf.Encode(&second, again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first.String(), second.String()); diff != "" {
			t.Errorf("written a second time (-first +second):\n%s", diff)
		}
	})
}
