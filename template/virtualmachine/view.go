package virtualmachine

import "maps"

// The kinds besides VirtualMachine that run VMs, of kubevirt.io and pool.kubevirt.io.
const (
	KindInstance   = "VirtualMachineInstance"
	KindReplicaSet = "VirtualMachineInstanceReplicaSet"
	KindPool       = "VirtualMachinePool"
)

// VirtAPI is the end of the user name of KubeVirt's own API server, which may run in any namespace. It writes to VMs what
// users request of a subresource such as addvolume, without a trace of the user.
const VirtAPI = ":kubevirt-apiserver"

// View returns an object of another kind as the equivalent VirtualMachine, so that it can be evaluated like one; false for
// any other kind.
//
//   - A VirtualMachineInstance is a VirtualMachine that runs once. Its labels and annotations are those of the VirtualMachine and of
//     its spec.template.
//   - A VirtualMachineInstanceReplicaSet has its spec.template; its VMs are replaced when they end.
//   - A VirtualMachinePool has the labels, annotations and spec of its spec.virtualMachineTemplate.
//
// Name, namespace and the rest of metadata are those of the object. The result shares values with the object, neither must
// be changed.
func View(kind string, object map[string]any) (map[string]any, bool) {
	spec, _ := object["spec"].(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	switch kind {
	case KindInstance:
		own := map[string]any{}
		for _, key := range []string{"labels", "annotations"} {
			if value, has := metadata[key]; has {
				own[key] = value
			}
		}
		return view(metadata, map[string]any{"runStrategy": "Once", "template": map[string]any{"metadata": own, "spec": object["spec"]}}), true
	case KindReplicaSet:
		return view(metadata, map[string]any{"runStrategy": "Always", "template": spec["template"]}), true
	case KindPool:
		of, _ := spec["virtualMachineTemplate"].(map[string]any)
		wanted, _ := of["metadata"].(map[string]any)
		combined := map[string]any{}
		maps.Copy(combined, metadata)
		for _, key := range []string{"labels", "annotations"} {
			delete(combined, key)
			if value, has := wanted[key]; has {
				combined[key] = value
			}
		}
		return view(combined, of["spec"]), true
	default:
		return nil, false
	}
}

func view(metadata, spec any) map[string]any {
	return map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": metadata, "spec": spec}
}
