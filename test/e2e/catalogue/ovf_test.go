package catalogue_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/ovf/conversion"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// Templates made from OVF descriptors of all styles are stored without a warning, and KubeVirt accepts the VMs that are created from them, with the
// preferences that the conversion chooses.
func TestTemplatesFromOVFAreAccepted(t *testing.T) {
	const imported = "imported"
	must(t, nil, gen.Manifest(gen.Namespace(imported)), "create", "-f", "-")
	files, err := filepath.Glob("../../../ovf/testdata/*.ovf")
	if err != nil || len(files) < 9 {
		t.Fatalf("found %d descriptors: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer raw.Close()
			envelope, err := ovf.Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := conversion.Import(envelope, conversion.Options{Namespace: imported})
			if err != nil {
				t.Fatal(err)
			}
			for _, system := range plan.Systems {
				manifest, err := json.Marshal(system.Template)
				if err != nil {
					t.Fatal(err)
				}
				if stored := must(t, nil, string(manifest), "create", "-f", "-"); stored.Stderr != "" {
					t.Errorf("warnings of %s:\n%s", system.Template.Name, stored.Stderr)
				}
				values := map[string]string{}
				for _, p := range system.Template.Spec.Parameters {
					switch {
					case p.Value != "" || p.Generate != "":
					case len(p.Enum) > 0:
						values[p.Name] = p.Enum[0]
					case strings.HasPrefix(p.Name, "NETWORK_"):
						values[p.Name] = "lan"
					}
				}
				vm := gen.VM("from-"+system.Template.Name, gen.FromTemplate(imported+"/"+system.Template.Name), gen.Parameters(values))
				result := kubectl(t, nil, gen.Manifest(vm), "create", "-n", imported, "-f", "-")
				if result.Code != 0 {
					t.Errorf("VM from %s: %s", system.Template.Name, result.Stderr)
				} else if warnings := harness.WithoutReadiness(result.Stderr); warnings != "" {
					t.Errorf("VM from %s has warnings:\n%s", system.Template.Name, warnings)
				}
			}
		})
	}
}
