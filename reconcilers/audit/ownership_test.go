package audit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestOwnersAndFinalizers(t *testing.T) {
	for name, tc := range map[string]struct{ metadata, want string }{
		"none": {metadata: `{}`},
		"KubeVirt's and Kubernetes'": {metadata: `{finalizers: [kubevirt.io/virtualMachineControllerFinalize, snapshot.kubevirt.io/a, foregroundDeletion, orphan],
			ownerReferences: [{apiVersion: pool.kubevirt.io/v1beta1, kind: VirtualMachinePool, name: p}, {apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: v}]}`},
		"of a controller that is permitted": {metadata: `{finalizers: [cluster.example.com/a], ownerReferences: [{apiVersion: cluster.example.com/v1, kind: Machine, name: m}]}`},
		"an owner of the core group": {metadata: `{ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: none}]}`,
			want: "it has owner ConfigMap none, which belongs to no controller of virtual machines"},
		"an owner of a group that ends like KubeVirt's": {metadata: `{ownerReferences: [{apiVersion: evilkubevirt.io/v1, kind: VirtualMachinePool, name: p}]}`,
			want: "it has owner VirtualMachinePool p, which belongs to no controller of virtual machines"},
		"finalizers": {metadata: `{finalizers: [example.com/a, b]}`,
			want: "it has finalizer example.com/a, finalizer b, which belongs to no controller of virtual machines"},
	} {
		t.Run(name, func(t *testing.T) {
			var metadata map[string]any
			if err := yaml.Unmarshal([]byte(tc.metadata), &metadata); err != nil {
				t.Fatal(err)
			}
			got := controllers{"cluster.example.com"}.ownership(map[string]any{"metadata": metadata}, "a")
			var want *cause
			if tc.want != "" {
				want = &cause{rule: "ForeignOwner", approval: "a", message: tc.want}
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(cause{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheSizeInTheStatus(t *testing.T) {
	known := sizes{
		"ControllerRevision n/web-u1":  "{metadata: {name: u1}, spec: {}}",
		"ControllerRevision n/big-u8":  "{metadata: {name: u8}, spec: {}}",
		"ControllerRevision n/web-pre": "{metadata: {name: pre}, spec: {}}",
	}
	for name, tc := range map[string]struct{ object, want string }{
		"no instance type":                  {object: `{spec: {}, status: {instancetypeRef: {controllerRevisionRef: {name: forged}}}}`},
		"one that has not been stored yet":  {object: `{spec: {instancetype: {name: u1}}}`},
		"one that the spec fixes":           {object: `{spec: {instancetype: {name: u1, revisionName: other}}}`},
		"what KubeVirt stores":              {object: `{spec: {instancetype: {name: u1}, preference: {name: pre}}, status: {instancetypeRef: {controllerRevisionRef: {name: web-u1}}, preferenceRef: {controllerRevisionRef: {name: web-pre}}}}`},
		"that of another instance type":     {object: `{spec: {instancetype: {name: u1}}, status: {instancetypeRef: {controllerRevisionRef: {name: big-u8}}}}`, want: `its status.instancetypeRef.controllerRevisionRef names ControllerRevision big-u8, which is of "u8" and not of "u1"`},
		"one that is no size":               {object: `{spec: {instancetype: {name: u1}}, status: {instancetypeRef: {controllerRevisionRef: {name: forged}}}}`, want: "its status.instancetypeRef.controllerRevisionRef names ControllerRevision forged, of which no size is known: it does not exist"},
		"that of another preference":        {object: `{spec: {preference: {name: pre}}, status: {preferenceRef: {controllerRevisionRef: {name: web-u1}}}}`, want: `its status.preferenceRef.controllerRevisionRef names ControllerRevision web-u1, which is of "u1" and not of "pre"`},
		"an instance type that has no name": {object: `{spec: {instancetype: {inferFromVolume: root}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(tc.object), &object); err != nil {
				t.Fatal(err)
			}
			got := sizeReference(t.Context(), known, object, "n", "a")
			var want *cause
			if tc.want != "" {
				want = &cause{rule: "SizeDifferent", approval: "a", message: tc.want}
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(cause{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
