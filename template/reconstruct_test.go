package template_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/template"
)

func TestReconstruct(t *testing.T) {
	for name, tc := range map[string]struct {
		spec, vm, want string
		ignored        string
	}{
		"the values that the machine shows": {
			spec: "parameters: [{name: A}, {name: B, value: x}]\nvirtualMachine: {spec: {template: {spec: {hostname: '${A}-${B}', subdomain: '${A}'}}}}",
			vm:   "spec: {template: {spec: {hostname: a-b, subdomain: a, nodeSelector: {x: z}}}}",
			want: "spec: {template: {spec: {hostname: a-b, subdomain: a}}}",
		},
		"a parameter that brought nothing brings nothing": {
			spec: "parameters: [{name: CORES, type: int}]\nvirtualMachine: {spec: {template: {spec: {domain: {cpu: {cores: '${{CORES}}', sockets: 1}}}}}}",
			vm:   "spec: {template: {spec: {domain: {cpu: {sockets: 1, threads: 2}}}}}",
			want: "spec: {template: {spec: {domain: {cpu: {sockets: 1}}}}}",
		},
		"an object that a parameter gave": {
			spec: "parameters: [{name: DISK}]\nvirtualMachine: {spec: {template: {spec: {volumes: [{name: root, emptyDisk: {}}, '${{DISK}}']}}}}",
			vm:   "spec: {template: {spec: {volumes: [{name: root, emptyDisk: {}}, {name: more, emptyDisk: {capacity: 1Gi}}]}}}",
			want: "spec: {template: {spec: {volumes: [{name: root, emptyDisk: {}}, {name: more, emptyDisk: {capacity: 1Gi}}]}}}",
		},
		"what only an override would show has the default, or anything": {
			spec: "parameters: [{name: A, required: true}, {name: NUM, required: true, type: int, minimum: 3}, {name: M, required: true, type: int, maximum: -3}, " +
				"{name: FLAG, required: true, type: bool}, {name: E, required: true, enum: [b, c]}, {name: D, value: d}, {name: O}, " +
				"{name: G, generate: expression, from: '[a-c]{3}'}, {name: I, required: true, type: int}]\n" +
				"virtualMachine: {spec: {template: {spec: {hostname: 'x-${A}-${NUM}-${M}-${FLAG}-${E}-${D}-${O}-${G}-${I}'}}}}",
			vm:      "spec: {template: {spec: {hostname: mine}}}",
			want:    "spec: {template: {spec: {hostname: x-anything-3--3-true-b-d--anything-1}}}",
			ignored: "hostname",
		},
	} {
		t.Run(name, func(t *testing.T) {
			compiled := compile(t, tc.spec)
			found := matched(t, compiled, vmOf(t, tc.vm), template.Ignoring(func(path ...string) bool { return path[len(path)-1] == tc.ignored }))
			rendered, err := compiled.Reconstruct(found)
			if err != nil {
				t.Fatal(err)
			}
			got := vmOf(t, string(rendered.JSON()))
			if diff := cmp.Diff(vmOf(t, tc.want)["spec"], got["spec"]); diff != "" {
				t.Errorf("reconstructed (-want +got):\n%s", diff)
			}
			other := compile(t, tc.spec)
			if _, err := other.Reconstruct(found); err == nil {
				t.Error("another template takes the values as well")
			}
		})
	}
}

// TestMatchWhatIsInferred covers inferFromVolume, which KubeVirt replaces by the name that it infers.
func TestMatchWhatIsInferred(t *testing.T) {
	const spec = "virtualMachine: {spec: {instancetype: {inferFromVolume: root, inferFromVolumeFailurePolicy: Reject}, preference: {inferFromVolume: root}, template: {spec: {hostname: a}}}}"
	testMatch(t, map[string]matchCase{
		"it was inferred": {
			spec: spec, vm: "spec: {instancetype: {name: u1.small, kind: x}, preference: {name: fedora}, template: {spec: {hostname: a}}}", wantValues: map[string]string{},
		},
		"it is still to be": {
			spec: spec, vm: "spec: {instancetype: {inferFromVolume: root, inferFromVolumeFailurePolicy: Reject}, preference: {inferFromVolume: root}, template: {spec: {hostname: a}}}", wantValues: map[string]string{},
		},
		"from another volume": {
			spec: spec, vm: "spec: {instancetype: {name: u1.small}, preference: {inferFromVolume: data}, template: {spec: {hostname: a}}}",
			wantDifferences: []string{`spec.preference.inferFromVolume: want "root", got "data"`},
		},
		"nothing is there": {
			spec: spec, vm: "spec: {preference: {name: fedora}, template: {spec: {hostname: a}}}",
			wantDifferences: []string{"spec.instancetype: want an object, got nothing"},
		},
		"elsewhere such a field is one like all": {
			spec:            "virtualMachine: {spec: {template: {metadata: {annotations: {inferFromVolume: root}}}}}",
			vm:              "spec: {template: {metadata: {annotations: {name: root}}}}",
			wantDifferences: []string{`spec.template.metadata.annotations.inferFromVolume: want "root", got nothing`},
		},
	})
}
