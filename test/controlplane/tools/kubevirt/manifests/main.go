// Command manifests prints, as one JSON list of Kubernetes objects, what KubeVirt's virt-operator installs for virt-api and virt-controller: the
// CustomResourceDefinitions, admission webhook configurations, APIServices and RBAC objects. The harness that starts a control plane without
// virt-operator takes names, rules, paths and printer columns from here, so that nothing of KubeVirt is copied by hand and an update of its version
// updates them.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"

	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/rbac"
)

// namespace is where KubeVirt is installed unless its installer is configured otherwise.
const namespace = "kubevirt"

func main() {
	objects, err := manifests()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func manifests() ([]runtime.Object, error) {
	var objects []runtime.Object
	for _, definition := range definitions {
		object, err := definition()
		if err != nil {
			return nil, err
		}
		// The schemas come from the API module, which may be newer; here they would only take space.
		for i := range object.Spec.Versions {
			object.Spec.Versions[i].Schema = nil
		}
		objects = append(objects, object)
	}
	objects = append(objects,
		components.NewVirtAPIMutatingWebhookConfiguration(namespace),
		components.NewVirtAPIValidatingWebhookConfiguration(namespace),
		components.NewKubeVirtPriorityClassCR(),
	)
	objects = append(objects, added()...)
	for _, service := range components.NewVirtAPIAPIServices(namespace) {
		objects = append(objects, service)
	}
	for _, roles := range [][]runtime.Object{
		rbac.GetAllCluster(),
		rbac.GetAllApiServer(namespace),
		controllerRoles(),
	} {
		objects = append(objects, roles...)
	}
	instancetypes, err := components.NewClusterInstancetypes()
	if err != nil {
		return nil, err
	}
	for _, instancetype := range instancetypes {
		objects = append(objects, instancetype)
	}
	preferences, err := components.NewClusterPreferences()
	if err != nil {
		return nil, err
	}
	for _, preference := range preferences {
		objects = append(objects, preference)
	}
	return objects, nil
}
