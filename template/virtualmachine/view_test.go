package virtualmachine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

func TestView(t *testing.T) {
	for kind, tc := range map[string]struct{ object, want string }{
		machine.KindInstance: {
			object: `{metadata: {name: a, namespace: n, labels: {l: "1"}, annotations: {b: "2"}}, spec: {domain: {cpu: {cores: 4}}}, status: {phase: Running}}`,
			want: `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: a, namespace: n, labels: {l: "1"}, annotations: {b: "2"}},
				spec: {runStrategy: Once, template: {metadata: {labels: {l: "1"}, annotations: {b: "2"}}, spec: {domain: {cpu: {cores: 4}}}}}}`,
		},
		machine.KindReplicaSet: {
			object: `{metadata: {name: a, labels: {l: "1"}}, spec: {replicas: 3, template: {metadata: {labels: {of: x}}, spec: {domain: {}}}}}`,
			want: `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: a, labels: {l: "1"}},
				spec: {runStrategy: Always, template: {metadata: {labels: {of: x}}, spec: {domain: {}}}}}`,
		},
		machine.KindPool: {
			object: `{metadata: {name: a, labels: {l: "1"}, annotations: {b: "2"}}, spec: {virtualMachineTemplate: {metadata: {labels: {of: x}}, spec: {instancetype: {name: u1}, template: {}}}}}`,
			want:   `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: a, labels: {of: x}}, spec: {instancetype: {name: u1}, template: {}}}`,
		},
	} {
		t.Run(kind, func(t *testing.T) {
			object, want := parse(t, tc.object), parse(t, tc.want)
			got, ok := machine.View(kind, object)
			if diff := cmp.Diff(want, got); diff != "" || !ok {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(parse(t, tc.object), object); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
			// An object without any of the fields is a VM without them.
			if _, ok := machine.View(kind, nil); !ok {
				t.Error("an empty object is none")
			}
		})
	}
	if _, ok := machine.View("VirtualMachine", parse(t, "{}")); ok {
		t.Error("a VirtualMachine is its own view")
	}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}
