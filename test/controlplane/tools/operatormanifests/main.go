// Command operatormanifests prints, as one JSON list of Kubernetes objects, what a cluster needs before KubeVirt's virt-operator runs: the definition of
// the KubeVirt object, the priority class of its pods, and virt-operator's account with its permissions.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/rbac"
)

// namespace is where KubeVirt is installed unless its installer is configured otherwise.
const namespace = "kubevirt"

func main() {
	definition, err := components.NewKubeVirtCrd()
	if err == nil {
		objects := append([]any{definition, components.NewKubeVirtPriorityClassCR()}, rbac.GetAllOperator(namespace)...)
		err = json.NewEncoder(os.Stdout).Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "operatormanifests:", err)
		os.Exit(1)
	}
}
