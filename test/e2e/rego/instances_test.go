package rego_test

import (
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// Other kinds that run VMs, each with a host device. The VirtualMachines of a pool have the label, the pool does not.
const (
	anInstance = `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: ways, namespace: default, labels: {test: ways}, annotations: {template.kubevirt.io/rendered: '{"namespace":"golden","name":"fedora"}'}}
spec: {domain: {devices: {gpus: [{name: gpu, deviceName: example.com/gpu}]}}}
`
	aReplicaSet = `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstanceReplicaSet
metadata: {name: ways, namespace: default, labels: {test: ways}}
spec:
  replicas: 2
  selector: {matchLabels: {of: ways}}
  template: {metadata: {labels: {of: ways}}, spec: {domain: {devices: {gpus: [{name: gpu, deviceName: example.com/gpu}]}}}}
`
	aPool = `
apiVersion: pool.kubevirt.io/v1beta1
kind: VirtualMachinePool
metadata: {name: ways, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {test: ways}}
  virtualMachineTemplate:
    metadata: {labels: {test: ways}}
    spec: {runStrategy: Always, template: {metadata: {labels: {test: ways}}, spec: {domain: {devices: {gpus: [{name: gpu, deviceName: example.com/gpu}]}}}}}
`
)

// What a policy denies as a VirtualMachine does not pass as another kind, and the policy needs no rules for these kinds.
func TestEveryKindThatRunsMachinesIsEvaluated(t *testing.T) {
	controller := harness.Controller(t, stencil.Plane, "kubevirt:kubevirt-controller")
	applied(t, "ways", "match: {objectSelector: {matchLabels: {test: ways}}}", `package ways
deny contains sprintf("a %s with GPU %s runs %s", [input.request.requestKind, gpu.deviceName, input.object.spec.runStrategy]) if {
  input.request.kind == "VirtualMachine"
  input.template == null
  some gpu in input.object.spec.template.spec.domain.devices.gpus
}`)
	active(t, "ways")
	for kind, tc := range map[string]struct{ manifest, words string }{
		"virtualmachineinstances.kubevirt.io":           {anInstance, "a VirtualMachineInstance with GPU example.com/gpu runs Once"},
		"virtualmachineinstancereplicasets.kubevirt.io": {aReplicaSet, "a VirtualMachineInstanceReplicaSet with GPU example.com/gpu runs Always"},
		"virtualmachinepools.pool.kubevirt.io":          {aPool, "a VirtualMachinePool with GPU example.com/gpu runs Always"},
	} {
		t.Run(kind, func(t *testing.T) {
			awaitAnswer(t, nil, tc.manifest, false, []string{kind + ` "ways" is forbidden: policy ways (medium): ` + tc.words}, "create", "-f", "-")
			// Without the device it is created, and the device cannot be added later.
			t.Cleanup(func() { must(t, "", "delete", kind, "ways", "--namespace=default", "--ignore-not-found") })
			must(t, strings.ReplaceAll(tc.manifest, "gpus: [{name: gpu, deviceName: example.com/gpu}]", ""), "create", "-f", "-")
			awaitAnswer(t, nil, tc.manifest, false, []string{tc.words}, "replace", "-f", "-")
			// Objects that KubeVirt's controllers create were evaluated as the objects they are created from.
			as(t, controller, "label", kind, "ways", "--namespace=default", "by=controller")
		})
	}
	t.Run("an instance of a stored machine", func(t *testing.T) {
		t.Cleanup(func() { must(t, "", "delete", "vmi", "ways", "--ignore-not-found") })
		if got, err := stencil.Kubectl(t.Context(), controller, anInstance, "create", "-f", "-"); err != nil || got.Code != 0 {
			t.Errorf("%v: %s", err, got.Stderr)
		}
	})
}

// virt-api writes to VirtualMachines what users request from subresources such as addvolume.
func TestWhatUsersAskOfSubresourcesIsEvaluated(t *testing.T) {
	api := harness.Controller(t, stencil.Plane, "kubevirt:kubevirt-apiserver")
	// The VirtualMachines are stored before the policy, which they violate.
	const disks = `"domain":{"devices":{"disks":[{"name":"a"},{"name":"b"}]}},"volumes":[{"name":"a","emptyDisk":{"capacity":"1Gi"}},{"name":"b","emptyDisk":{"capacity":"1Gi"}}]`
	must(t, vmManifest("plugged", "plugged", gen.Spec(`{"template":{"spec":{`+disks+`}}}`)), "create", "-f", "-")
	must(t, `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstance","metadata":{"name":"plugged","namespace":"default","labels":{"test":"plugged"}},"spec":{`+disks+`}}`, "create", "-f", "-")
	t.Cleanup(func() {
		must(t, "", "delete", "vmpol", "plugged", "--ignore-not-found")
		must(t, "", "delete", "vm,vmi", "plugged")
	})
	applied(t, "plugged", "match: {objectSelector: {matchLabels: {test: plugged}}}", `package plugged
deny contains "only one disk" if count(input.object.spec.template.spec.volumes) > 1`)
	active(t, "plugged")
	for kind, path := range map[string]string{"vm": "/spec/template/spec", "vmi": "/spec"} {
		plug := `--patch=[{"op":"add","path":"` + path + `/volumes/-","value":{"name":"c","emptyDisk":{"capacity":"1Gi"}}},` +
			`{"op":"add","path":"` + path + `/domain/devices/disks/-","value":{"name":"c"}}]`
		awaitAnswer(t, api, "", false, []string{`"plugged" is forbidden: policy plugged (medium): only one disk`}, "patch", kind, "plugged", "--type=json", plug)
		// Changes of its own metadata are not evaluated.
		as(t, api, "annotate", kind, "plugged", "seen=true")
	}
	as(t, api, "patch", "vm", "plugged", "--type=merge", `--patch={"spec":{"runStrategy":"Always"}}`)
}
