// Command manifests prints, as one JSON list of Kubernetes objects, what CDI's operator installs for cdi-controller and cdi-apiserver: the
// CustomResourceDefinitions, admission webhook configurations, RBAC objects and service accounts. The harness that starts a control plane without the
// operator takes them from here, so that nothing of CDI is copied by hand and an update of its version updates them.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubevirt.io/containerized-data-importer/pkg/operator/resources/cluster"
	"kubevirt.io/containerized-data-importer/pkg/operator/resources/namespaced"
)

// namespace is where CDI is installed unless its installer is configured otherwise.
const namespace = "cdi"

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

func manifests() ([]client.Object, error) {
	var objects []client.Object
	// Without a client the operator's functions read nothing and leave out the CA bundle, which is the harness's.
	given := &cluster.FactoryArgs{Namespace: namespace}
	for _, group := range []string{"crd-resources", "controller-rbac", "apiserver-rbac", "aggregate-roles"} {
		made, err := cluster.CreateStaticResourceGroup(group, given)
		if err != nil {
			return nil, fmt.Errorf("making the cluster's %s: %w", group, err)
		}
		objects = append(objects, made...)
	}
	made, err := cluster.CreateDynamicResourceGroup("apiserver-registrations", given)
	if err != nil {
		return nil, fmt.Errorf("making webhook configurations: %w", err)
	}
	objects = append(objects, made...)
	for _, group := range []string{"controller", "apiserver"} {
		made, err := namespaced.CreateResourceGroup(group, &namespaced.FactoryArgs{Namespace: namespace})
		if err != nil {
			return nil, fmt.Errorf("making what belongs to the %s: %w", group, err)
		}
		for _, object := range made {
			// The harness runs the processes itself.
			if kind := object.GetObjectKind().GroupVersionKind().Kind; kind != "Deployment" && kind != "Service" {
				objects = append(objects, object)
			}
		}
	}
	return objects, nil
}
