package conversion_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/ovf/conversion"
	"github.com/vmstencil/stencil/template"
)

var update = flag.Bool("update", false, "write the golden files anew")

// compareGolden compares a text with a file in testdata, or writes the file.
func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func decodeFile(t testing.TB, file string) *ovf.Envelope {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, string(raw))
}

func decode(t testing.TB, text string) *ovf.Envelope {
	t.Helper()
	envelope, err := ovf.Decode(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return envelope
}

func compile(t testing.TB, object *v1beta1.VirtualMachineTemplate) *template.Compiled {
	t.Helper()
	compiled, err := template.Compile(object)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// values returns a value for each parameter that needs one.
func values(object *v1beta1.VirtualMachineTemplate) map[string]string {
	values := map[string]string{"NAME": "vm-1"}
	for _, p := range object.Spec.Parameters {
		switch {
		case p.Name == "NAME" || p.Value != "" || p.Generate != "":
		case len(p.Enum) > 0:
			values[p.Name] = p.Enum[0]
		case strings.HasPrefix(p.Name, "NETWORK_"):
			values[p.Name] = "shop/lan"
		case p.Required:
			// It satisfies the least lengths of the tests.
			values[p.Name] = "xx"
		}
	}
	return values
}

// ones is a source of random bytes that are all the same.
type ones struct{}

func (ones) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 1
	}
	return len(p), nil
}

func render(t testing.TB, object *v1beta1.VirtualMachineTemplate, values map[string]string) *template.Rendered {
	t.Helper()
	compiled, err := template.Compile(object, template.WithRandom(ones{}))
	if err != nil {
		t.Fatal(err)
	}
	binding, err := compiled.Bind(values)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := compiled.Render(binding)
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

// TestPlansOfAllStyles compares, for each descriptor in the testdata of package ovf, the notes, the disks, the template, the warnings of the
// template engine, and the objects that it renders with a value for each parameter that needs one.
func TestPlansOfAllStyles(t *testing.T) {
	files, err := filepath.Glob("../testdata/*.ovf")
	if err != nil || len(files) < 9 {
		t.Fatalf("found %d descriptors: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			plan, err := conversion.Import(decodeFile(t, file), conversion.Options{Namespace: "golden"})
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			for _, note := range plan.Notes {
				fmt.Fprintln(&got, "#", note)
			}
			for _, system := range plan.Systems {
				fmt.Fprintf(&got, "--- # system %s, configuration %q\n", system.System, system.Configuration)
				for _, note := range system.Notes {
					fmt.Fprintln(&got, "#", note)
				}
				for _, disk := range system.Disks {
					fmt.Fprintf(&got, "# disk: %+v\n", disk)
				}
				for _, warning := range compile(t, system.Template).Warnings() {
					fmt.Fprintln(&got, "# template engine:", warning)
				}
				text, err := yaml.Marshal(system.Template)
				if err != nil {
					t.Fatal(err)
				}
				got.Write(text)
				rendered := render(t, system.Template, values(system.Template))
				for _, raw := range append([]json.RawMessage{rendered.JSON()}, objects(t, rendered)...) {
					text, err := yaml.JSONToYAML(raw)
					if err != nil {
						t.Fatal(err)
					}
					fmt.Fprintf(&got, "--- # rendered\n%s", text)
				}
			}
			compareGolden(t, strings.TrimSuffix(filepath.Base(file), ".ovf")+".golden.yaml", got.Bytes())
		})
	}
}

func objects(t testing.TB, rendered *template.Rendered) []json.RawMessage {
	t.Helper()
	var all []json.RawMessage
	if raw := rendered.Objects(); len(raw) > 0 {
		if err := json.Unmarshal(raw, &all); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
