package gen_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/test/gen"
)

func TestVM(t *testing.T) {
	for name, tc := range map[string]struct {
		vm           *unstructured.Unstructured
		wantManifest string
	}{
		"a name is all that is set without modifiers": {
			vm: gen.VM("web-1"),
			wantManifest: `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web-1
`,
		},
		"a VM from a template has no spec": {
			vm: gen.VM("web-1", gen.InNamespace("team-a"), gen.FromTemplate("golden/fedora"), gen.Parameter("CORES", "2"),
				gen.Parameters(map[string]string{"SIZE": "10Gi"})),
			wantManifest: `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  annotations:
    parameter.template.kubevirt.io/CORES: "2"
    parameter.template.kubevirt.io/SIZE: 10Gi
    template.kubevirt.io/template-ref: golden/fedora
  name: web-1
  namespace: team-a
`,
		},
		"a generated name replaces a name, and fields in YAML merge": {
			vm: gen.VM("", gen.GenerateName("web-"), gen.Label("app", "web"), gen.Annotation("note", "a"), gen.RunStrategy("Always"),
				gen.Fields("metadata: {labels: {tier: front}}\nspec: {template: {spec: {domain: {cpu: {cores: 2}}}}}\n"), gen.APIVersion("kubevirt.io/v1alpha3")),
			wantManifest: `apiVersion: kubevirt.io/v1alpha3
kind: VirtualMachine
metadata:
  annotations:
    note: a
  generateName: web-
  labels:
    app: web
    tier: front
spec:
  runStrategy: Always
  template:
    spec:
      domain:
        cpu:
          cores: 2
`,
		},
		"fields replace what is not a map": {
			vm: gen.VM("bad", gen.SmallSpec(), gen.Fields("spec: [1]")),
			wantManifest: `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: bad
spec:
- 1
`,
		},
		"each volume has its disk": {
			vm: gen.VM("web-1", gen.SmallSpec(), gen.CloudInit("init", "#cloud-config"), gen.DataVolumeTemplate("web-1", "1Gi")),
			wantManifest: `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web-1
spec:
  dataVolumeTemplates:
  - metadata:
      name: web-1
    spec:
      source:
        blank: {}
      storage:
        resources:
          requests:
            storage: 1Gi
  runStrategy: Halted
  template:
    spec:
      domain:
        devices:
          disks:
          - disk:
              bus: virtio
            name: init
          - disk:
              bus: virtio
            name: web-1
        memory:
          guest: 64Mi
      volumes:
      - cloudInitNoCloud:
          userData: '#cloud-config'
        name: init
      - dataVolume:
          name: web-1
        name: web-1
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.wantManifest, gen.Manifest(tc.vm)); diff != "" {
				t.Errorf("manifest (-want +got):\n%s", diff)
			}
		})
	}
}

func TestModifiersCanBuildSeveralVMs(t *testing.T) {
	team := gen.Fields("metadata: {labels: {team: a}}")
	first := gen.VM("first", team, gen.Label("app", "web"))
	second := gen.VM("second", team)
	if diff := cmp.Diff(map[string]string{"team": "a"}, second.GetLabels()); diff != "" {
		t.Errorf("a change of %s reached the next VM (-want +got):\n%s", first.GetName(), diff)
	}
}

func TestManifestSeparatesObjects(t *testing.T) {
	want := "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata:\n  name: a\n---\napiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata:\n  name: b\n"
	if diff := cmp.Diff(want, gen.Manifest(gen.VM("a"), gen.VM("b"))); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
}
