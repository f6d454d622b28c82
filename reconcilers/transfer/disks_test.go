package transfer

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// disksOf prepares a template with these dataVolumeTemplates, each with a volume of the same name.
func disksOf(t *testing.T, volumes ...string) *exportable {
	t.Helper()
	text := "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nspec:\n  dataVolumeTemplates:\n"
	guest := "  template: {spec: {domain: {devices: {disks: [{name: v0, disk: {}}]}}, volumes: ["
	for i, each := range volumes {
		name := string(rune('a' + i))
		text += "  - {metadata: {name: " + name + "}, spec: " + each + "}\n"
		guest += "{name: v" + string(rune('0'+i)) + ", dataVolume: {name: " + name + "}},"
	}
	raw, err := yaml.YAMLToJSON([]byte(text + guest + "]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	template := &v1beta1.VirtualMachineTemplate{}
	template.Namespace, template.Name = "shop", "web"
	template.Spec.VirtualMachine = &runtime.RawExtension{Raw: raw}
	vm, err := machine.Decode([]byte(strings.ReplaceAll(string(raw), "${IMAGE}", "centos")))
	if err != nil {
		t.Fatal(err)
	}
	prepared, err := prepare(template, vm)
	if err != nil {
		t.Fatal(err)
	}
	return prepared
}

func TestDisksOfATemplateAreFound(t *testing.T) {
	p := disksOf(t,
		`{source: {pvc: {name: root}}}`,
		`{sourceRef: {kind: DataSource, name: fedora, namespace: golden}}`,
		`{source: {snapshot: {name: snap}}}`,
		`{sourceRef: {kind: DataSource, name: "${IMAGE}", namespace: golden}}`,
		`{source: {http: {url: "https://a"}}}`,
	)
	var got []string
	for _, disk := range p.disks {
		got = append(got, disk.volume+" "+disk.source.Kind+" "+disk.source.Namespace+"/"+disk.source.Name)
	}
	// What a parameter selects, and what CDI downloads, is not the template's own.
	want := []string{
		`v0 PersistentVolumeClaim shop/root`,
		`v1 DataSource golden/fedora`,
		`v2 VolumeSnapshot shop/snap`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// An import of the package finds claims of the template in both.
	if text := string(p.template.Spec.VirtualMachine.Raw); !strings.Contains(text, `"pvc":{"name":"datasource:golden:fedora","namespace":"golden"}`) {
		t.Error(text)
	}
}
