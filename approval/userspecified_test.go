package approval_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/approval"
)

func TestUserSpecified(t *testing.T) {
	const rendered = `
metadata: {name: web, labels: {os: linux}}
spec:
  runStrategy: Halted
  template:
    spec:
      domain:
        devices:
          interfaces: [{name: default, masquerade: {}}, {name: storage, bridge: {}}]
          tpm: {}
      networks: [{name: default, pod: {}}]
  dataVolumeTemplates: [{metadata: {name: web}}]
`
	for _, tc := range []struct {
		name, object string
		want         []string
	}{
		{name: "nothing but the reference", object: `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web-1
  generateName: web-
  namespace: team-a
  annotations:
    template.kubevirt.io/template-ref: golden/fedora
    parameter.template.kubevirt.io/CPU: "4"
    kubectl.kubernetes.io/last-applied-configuration: "{}"
`},
		{name: "labels and annotations of one's own", object: "metadata: {labels: {team: a}, annotations: {example.com/owner: ada}}", want: []string{`metadata.annotations["example.com/owner"]`, "metadata.labels.team"}},
		{name: "what Stencil writes itself is discarded, not evaluated", object: "metadata: {labels: {vm.kubevirt.io/template: forged}, annotations: {template.kubevirt.io/rendered: forged}}"},
		{name: "a field that the template has", object: "spec: {runStrategy: Always}", want: []string{"spec.runStrategy"}},
		{name: "the same value as the template's is written too", object: "spec: {runStrategy: Halted}", want: []string{"spec.runStrategy"}},
		{name: "fields that the template does not have", object: "spec: {template: {spec: {domain: {cpu: {cores: 64}}, nodeSelector: {disk: ssd}}}}", want: []string{"spec.template.spec.domain.cpu.cores", "spec.template.spec.nodeSelector.disk"}},
		{name: "what typed clients send for fields that nobody set", object: "{metadata: {creationTimestamp: null}, spec: {runStrategy: null, template: {metadata: {creationTimestamp: null}, spec: {domain: {devices: {}}}}}, status: {}}"},
		{name: "an empty map that the template has not", object: "spec: {template: {spec: {domain: {devices: {rng: {}, tpm: {}}}}}}", want: []string{"spec.template.spec.domain.devices.rng.*"}},
		{
			name:   "an item that is merged, field by field",
			object: "spec: {template: {spec: {domain: {devices: {interfaces: [{name: default, macAddress: 'de:ad:be:ef:00:01', masquerade: {}}]}}}}}",
			want:   []string{"spec.template.spec.domain.devices.interfaces[name=default].macAddress"},
		},
		{name: "an item that says nothing but its name", object: "spec: {template: {spec: {networks: [{name: default}]}}}"},
		{name: "an item that the template does not have", object: "spec: {template: {spec: {networks: [{name: evil, multus: {networkName: secret}}]}}}", want: []string{"spec.template.spec.networks[name=evil]"}},
		{name: "a list of items that the template has none of", object: "spec: {template: {spec: {volumes: [{name: evil, hostDisk: {path: /}}]}}}", want: []string{"spec.template.spec.volumes[name=evil]"}},
		{name: "a list that replaces the template's", object: "spec: {dataVolumeTemplates: [{metadata: {name: mine}}]}", want: []string{"spec.dataVolumeTemplates[*]"}},
		{name: "a list of which one item has no name replaces the template's", object: "spec: {template: {spec: {networks: [{name: default}, {pod: {}}]}}}", want: []string{"spec.template.spec.networks[*]"}},
		{name: "an empty list replaces the template's", object: "spec: {template: {spec: {networks: []}}}", want: []string{"spec.template.spec.networks[*]"}},
		{name: "an empty list where the template has none", object: "spec: {template: {spec: {tolerations: []}}}"},
		{name: "a list in place of a value", object: "spec: {runStrategy: [a]}", want: []string{"spec.runStrategy"}},
		{name: "a map in place of a list", object: "spec: {dataVolumeTemplates: {a: b}}", want: []string{"spec.dataVolumeTemplates"}},
		{name: "a value in place of a map", object: "spec: {template: x}", want: []string{"spec.template"}},
		{name: "a value in place of all labels", object: "metadata: {labels: x}", want: []string{"metadata.labels"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := texts(approval.UserSpecified(tree(t, tc.object), tree(t, rendered)))
			if diff := cmp.Diff(tc.want, got, sorted); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestPathsComeInTheSameOrderEachTime(t *testing.T) {
	object := tree(t, "{metadata: {labels: {b: x, a: x}}, spec: {z: 1, a: {y: 1, b: 2}, l: [{name: b}, {name: a}]}}")
	want := texts(approval.UserSpecified(object, nil))
	for range 20 {
		if diff := cmp.Diff(want, texts(approval.UserSpecified(object, nil))); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(want, texts(approval.Changes(nil, object))); diff != "" {
			t.Fatal(diff)
		}
	}
}
