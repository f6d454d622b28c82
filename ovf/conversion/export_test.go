package conversion_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/ovf/conversion"
	"github.com/vmstencil/stencil/ovf/ova"
)

func readTemplate(t *testing.T) *v1beta1.VirtualMachineTemplate {
	t.Helper()
	raw, err := os.ReadFile("testdata/export.yaml")
	if err != nil {
		t.Fatal(err)
	}
	object := &v1beta1.VirtualMachineTemplate{}
	if err := yaml.UnmarshalStrict(raw, object); err != nil {
		t.Fatal(err)
	}
	return object
}

func exportOptions(t *testing.T, object *v1beta1.VirtualMachineTemplate) conversion.ExportOptions {
	t.Helper()
	return conversion.ExportOptions{
		VM: render(t, object, map[string]string{"NAME": "shop-1"}).Object(),
		Disks: []conversion.ExportDisk{
			{Volume: "root", File: ovf.File{Href: "shop-root.vmdk", Size: 9}, Format: ovf.FormatVMDKStream, Capacity: 10 << 30, Populated: 4 << 30},
			{Volume: "tools", File: ovf.File{Href: "shop-tools.iso", Size: 4}, Format: ovf.FormatISO, Capacity: 4, Populated: -1},
		},
	}
}

// TestATemplateSurvivesItsPackage exports a template, writes the OVA, reads it as a stream, and imports it.
func TestATemplateSurvivesItsPackage(t *testing.T) {
	before := readTemplate(t)
	exported, err := conversion.Export(before, exportOptions(t, before))
	if err != nil {
		t.Fatal(err)
	}
	var b, descriptor bytes.Buffer
	if err := ovf.Encode(&descriptor, exported.Envelope); err != nil {
		t.Fatal(err)
	}
	for _, note := range exported.Notes {
		descriptor.WriteString("<!-- " + note.String() + " -->\n")
	}
	compareGolden(t, "export.golden.ovf", descriptor.Bytes())
	w, err := ova.NewWriter(&b, exported.Envelope, ova.WriterOptions{Name: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"disk root", "cd 1", string(exported.Template)} {
		if err := w.Add(strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	r := ova.NewReader(&b)
	var raw []byte
	for {
		entry, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if entry.File.ID == conversion.EmbeddedFile(r.Envelope()).ID {
			if raw, err = io.ReadAll(io.LimitReader(entry, conversion.MaxTemplateBytes+1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	plan, err := conversion.Import(r.Envelope(), conversion.Options{Template: raw})
	if err != nil {
		t.Fatal(err)
	}
	system := plan.Systems[0]
	if diff := cmp.Diff(normal(t, before), normal(t, system.Template)); diff != "" || !system.Restored {
		t.Errorf("the template (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff([]conversion.Disk{{Volume: "root", Claim: "shop-root", File: "shop-root.vmdk", Format: ovf.FormatVMDKStream, Capacity: 10 << 30}}, system.Disks); diff != "" {
		t.Errorf("disks (-want +got):\n%s", diff)
	}

	// In another namespace, only the disks of the package are looked for there.
	plan, err = conversion.Import(r.Envelope(), conversion.Options{Template: raw, Namespace: "prod", Name: "shop-2"})
	if err != nil {
		t.Fatal(err)
	}
	moved := plan.Systems[0].Template
	text := string(moved.Spec.VirtualMachine.Raw)
	if moved.Name != "shop-2" || moved.Namespace != "prod" || !strings.Contains(text, `{"name":"shop-root","namespace":"prod"}`) || !strings.Contains(text, `{"name":"other","namespace":"golden"}`) || !strings.Contains(text, "9007199254740993") {
		t.Errorf("moved: %s/%s %s", moved.Namespace, moved.Name, text)
	}

	// Without the file, the descriptor is imported.
	plan, err = conversion.Import(r.Envelope(), conversion.Options{Namespace: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	compile(t, plan.Systems[0].Template)
	domain := guest(t, &plan.Systems[0])["domain"].(map[string]any)
	got, err := json.Marshal([]any{domain["cpu"], domain["memory"], domain["firmware"], domain["devices"].(map[string]any)["interfaces"]})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`[{"cores":4,"sockets":2},{"guest":"4Gi"},{"bootloader":{"efi":{"secureBoot":true}}},[{"masquerade":{},"model":"virtio","name":"default"},{"bridge":{},"model":"e1000e","name":"net1"}]]`, string(got)); diff != "" {
		t.Errorf("what other products import (-want +got):\n%s", diff)
	}
}

// normal returns a template as a map, for comparison.
func normal(t *testing.T, object *v1beta1.VirtualMachineTemplate) map[string]any {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var decoded map[string]any
	if err := json.Unmarshal(raw, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func TestStateOfTheClusterIsNotExported(t *testing.T) {
	object := readTemplate(t)
	object.UID, object.ResourceVersion, object.Generation = "u", "1", 7
	object.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = "{}"
	exported, err := conversion.Export(object, exportOptions(t, object))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(exported.Template); strings.Contains(text, "last-applied") || strings.Contains(text, `"uid"`) || strings.Contains(text, "resourceVersion") || strings.Contains(text, "generation") {
		t.Error(text)
	}
	if object.UID != "u" || len(object.Annotations) != 2 {
		t.Error("the given template was modified")
	}
}

func TestWhatCannotBeExported(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1beta1.VirtualMachineTemplate, *conversion.ExportOptions)
		want   string
	}{
		"no memory":       {func(_ *v1beta1.VirtualMachineTemplate, o *conversion.ExportOptions) { o.VM = map[string]any{} }, `exporting the template shop: the VirtualMachine has the memory ""; want at least 1 MiB. Apply its instance type before the export`},
		"an unknown disk": {func(_ *v1beta1.VirtualMachineTemplate, o *conversion.ExportOptions) { o.Disks[0].Volume = "x" }, `exporting the template shop: the VirtualMachine has no volume "x", whose disk is to be exported`},
		"a large template": {func(t *v1beta1.VirtualMachineTemplate, _ *conversion.ExportOptions) {
			t.Spec.Message = strings.Repeat("x", 1<<20)
		}, "exporting the template shop: it is larger than 1024 KiB"},
	} {
		object := readTemplate(t)
		options := exportOptions(t, object)
		tc.change(object, &options)
		if _, err := conversion.Export(object, options); err == nil || err.Error() != tc.want {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestEmbeddedTemplatesThatAreRejected(t *testing.T) {
	object := readTemplate(t)
	exported, err := conversion.Export(object, exportOptions(t, object))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		raw, want string
	}{
		"no JSON":          {"{", "converting the OVF: decoding the template of the package: unexpected end of JSON input"},
		"an unknown field": {strings.Replace(string(exported.Template), `"spec":{`, `"spec":{"x":1,`, 1), `converting the OVF: decoding the template of the package: unknown field "spec.x"`},
		"another kind":     {`{"apiVersion":"v1","kind":"Secret"}`, `converting the OVF: the template of the package is a "Secret" of "v1"; want a VirtualMachineTemplate of template.kubevirt.io/v1beta1`},
		"too large":        {strings.Repeat(" ", 1<<20+1), "converting the OVF: the template of the package is larger than 1024 KiB"},
	} {
		_, err := conversion.Import(exported.Envelope, conversion.Options{Template: []byte(tc.raw)})
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s: got %v", name, err)
		}
	}
	preference := "linux"
	for want, options := range map[string]conversion.Options{
		"converting the OVF: the package carries its template, so that no instance type can be chosen": {Instancetype: "u1.medium"},
		"converting the OVF: the package carries its template, so that no preference can be chosen":    {Preference: &preference},
	} {
		options.Template = exported.Template
		if _, err := conversion.Import(exported.Envelope, options); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	// The command names files after templates and claims.
	outside := strings.Replace(string(exported.Template), `"name":"`+object.Name+`"`, `"name":"../outside"`, 1)
	const wantName = `converting the OVF: the template name "../outside" is not the name of an object; want lower case letters, digits, hyphens and dots`
	if _, err := conversion.Import(exported.Envelope, conversion.Options{Template: []byte(outside)}); err == nil || err.Error() != wantName {
		t.Errorf("a name outside of the folder: got %v", err)
	}
	for i, attribute := range exported.Envelope.Extensions[0].Children[2].Attributes {
		if attribute.Local != "claim" {
			continue
		}
		exported.Envelope.Extensions[0].Children[2].Attributes[i].Value = "../outside"
		const want = `converting the OVF: the claim "../outside" is not the name of an object; want lower case letters, digits, hyphens and dots`
		if _, err := conversion.Import(exported.Envelope, conversion.Options{Template: exported.Template}); err == nil || err.Error() != want {
			t.Errorf("a claim outside of the folder: got %v", err)
		}
	}
	exported.Envelope.Extensions[0].Children[2].Attributes[0].Value = "none"
	const want = `converting the OVF: the section of the template refers to the file "none", which the package does not have, or names no claim`
	if _, err := conversion.Import(exported.Envelope, conversion.Options{Template: exported.Template}); err == nil || err.Error() != want {
		t.Errorf("an unknown disk: got %v", err)
	}
}
