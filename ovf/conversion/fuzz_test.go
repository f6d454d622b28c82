package conversion_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/ovf/conversion"
)

// FuzzImport checks that what is imported is accepted by the template engine, in every delivery.
func FuzzImport(f *testing.F) {
	files, err := filepath.Glob("../testdata/*.ovf")
	if err != nil {
		f.Fatal(err)
	}
	styles, err := filepath.Glob(filepath.Join(corpus, "*.ovf"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, styles...) {
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
		for _, delivery := range []conversion.Delivery{conversion.DeliveryEnvironment, conversion.DeliveryCloudInit, conversion.DeliveryNone} {
			plan, err := conversion.Import(envelope, conversion.Options{Namespace: "golden", Delivery: delivery})
			if err != nil {
				continue
			}
			for i := range plan.Systems {
				compile(t, plan.Systems[i].Template)
			}
		}
	})
}
