package disks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/template"
)

// lender is template golden/web, whose VMs have one disk with this spec.
func lender(t *testing.T, labels map[string]string, parameters, disk string) disks.Lender {
	t.Helper()
	object := &v1beta1.VirtualMachineTemplate{}
	text := fmt.Sprintf(`{spec: {parameters: [{name: NAME, required: true}%s], virtualMachine: {metadata: {name: "${NAME}"}, spec: {
		dataVolumeTemplates: [{metadata: {name: "${NAME}"}, spec: %s}], template: {spec: {domain: {devices: {}}, volumes: [{name: root, dataVolume: {name: "${NAME}"}}]}}}}}}`, parameters, disk)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	compiled, err := template.Compile(object)
	if err != nil {
		t.Fatal(err)
	}
	return disks.Lender{Namespace: "golden", Name: "web", Labels: labels, Compiled: compiled}
}

func TestLoans(t *testing.T) {
	lends := map[string]string{"stencil.kubevirt.io/disk-access": "Lend"}
	const (
		fixed  = `{sourceRef: {kind: DataSource, namespace: golden, name: fedora}, storage: {}}`
		open   = `{sourceRef: {kind: DataSource, namespace: golden, name: "${SOURCE}"}, storage: {}}`
		source = `, {name: SOURCE, value: fedora}`
	)
	vm := func(disk string) string {
		return `{metadata: {name: web-1, namespace: team-a}, spec: {dataVolumeTemplates: [{metadata: {name: web-1}, spec: ` + disk + `}],
			template: {spec: {domain: {devices: {}}, volumes: [{name: root, dataVolume: {name: web-1}}]}}}}`
	}
	for name, tc := range map[string]struct {
		labels           map[string]string
		parameters, disk string
		vm               string
		// want is the denial of each loan; empty texts are lent.
		want []string
	}{
		"the source that the template names": {labels: lends, disk: fixed, vm: vm(fixed), want: []string{""}},
		"the default of a parameter":         {labels: lends, parameters: source, disk: open, vm: vm(fixed), want: []string{""}},
		"a value that the template lists": {labels: lends, parameters: `, {name: SOURCE, value: fedora, enum: [fedora, debian]}`, disk: open,
			vm: vm(strings.Replace(fixed, "fedora", "debian", 1)), want: []string{""}},
		"a value that a user chose freely": {labels: lends, parameters: source, disk: open, vm: vm(strings.Replace(fixed, "fedora", "debian", 1)),
			want: []string{"parameter SOURCE selects the source, and its value is neither the default nor one that VirtualMachineTemplate golden/web lists"}},
		"a generated value": {labels: lends, parameters: `, {name: SOURCE, generate: expression, from: "[a-z]{6}"}`, disk: open, vm: vm(fixed),
			want: []string{"parameter SOURCE selects the source, and its value is neither the default nor one that VirtualMachineTemplate golden/web lists"}},
		"the name of the VM as a source": {labels: lends, disk: `{sourceRef: {kind: DataSource, namespace: golden, name: "${NAME}"}, storage: {}}`,
			vm:   vm(`{sourceRef: {kind: DataSource, namespace: golden, name: web-1}, storage: {}}`),
			want: []string{"parameter NAME selects the source, and its value is neither the default nor one that VirtualMachineTemplate golden/web lists"}},
		"a source that the template does not name": {labels: lends, disk: fixed, vm: vm(strings.Replace(fixed, "fedora", "payroll", 1)),
			want: []string{"VirtualMachineTemplate golden/web does not name DataSource golden/payroll"}},
		"the claim behind the source that it names": {labels: lends, disk: fixed, vm: vm(`{source: {pvc: {namespace: golden, name: fedora}}, storage: {}}`),
			want: []string{"VirtualMachineTemplate golden/web does not name PersistentVolumeClaim golden/fedora"}},
		"a source of another namespace": {labels: lends, disk: strings.Replace(fixed, "golden", "finance", 1), vm: vm(strings.Replace(fixed, "golden", "finance", 1)),
			want: []string{"VirtualMachineTemplate golden/web lends only what is in its own namespace, and DataSource finance/fedora is not"}},
		"a template that does not lend": {disk: fixed, vm: vm(fixed),
			want: []string{"VirtualMachineTemplate golden/web does not lend its disks: it lacks label stencil.kubevirt.io/disk-access=Lend"}},
		"a template that does not exist any more": {vm: vm(fixed),
			want: []string{"VirtualMachineTemplate golden/web, which the VirtualMachine was rendered from, does not exist any more, or is invalid"}},
		"another value of the label": {labels: map[string]string{"stencil.kubevirt.io/disk-access": "lend"}, disk: fixed, vm: vm(fixed),
			want: []string{"VirtualMachineTemplate golden/web does not lend its disks: it lacks label stencil.kubevirt.io/disk-access=Lend"}},
		"two sources": {labels: lends, disk: fixed, vm: vm(`{sourceRef: {kind: DataSource, namespace: golden, name: fedora}, source: {pvc: {namespace: golden, name: payroll}}, storage: {}}`),
			want: []string{"only a single source or sourceRef is lent"}},
		"a source of the storage": {labels: lends, disk: fixed, vm: vm(`{storage: {dataSourceRef: {kind: PersistentVolumeClaim, namespace: golden, name: payroll}}}`),
			want: []string{"only a single source or sourceRef is lent"}},
		"a copy within the namespace, and an empty disk": {labels: lends, disk: fixed, vm: strings.Replace(vm(`{source: {pvc: {name: own}}}`), "dataVolumeTemplates: [", "dataVolumeTemplates: [{metadata: {name: b}, spec: {source: {blank: {}}}}, ", 1)},
		"a second disk by the user": {labels: lends, disk: fixed,
			vm:   strings.Replace(vm(fixed), "dataVolumeTemplates: [", "dataVolumeTemplates: [{metadata: {name: b}, spec: {source: {pvc: {namespace: golden, name: payroll}}}}, ", 1),
			want: []string{"VirtualMachineTemplate golden/web does not name PersistentVolumeClaim golden/payroll", ""}},
		"a disk of another name": {labels: lends, disk: fixed, vm: strings.ReplaceAll(vm(fixed), "name: web-1}, spec", "name: other}, spec"), want: []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			object := decodeYAML(t, tc.vm)
			from := disks.Lender{Namespace: "golden", Name: "web"}
			if tc.disk != "" {
				from = lender(t, tc.labels, tc.parameters, tc.disk)
			}
			loans, err := disks.Loans(object, "team-a", from)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, loan := range loans {
				got = append(got, loan.Denial)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if foreign := disks.Foreign(object["spec"].(map[string]any), "team-a"); foreign != (len(tc.want) > 0) {
				t.Errorf("foreign: %v", foreign)
			}
		})
	}
}

func decodeYAML(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, string(raw))
}
