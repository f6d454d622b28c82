package capture

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Objects of the VirtualMachine that the request can contain.
const (
	includeServices = "Services"
	includeSecrets  = "Secrets"
)

var includable = []string{includeServices, includeSecrets}

var (
	services = corev1.SchemeGroupVersion.WithResource("services")
	secrets  = corev1.SchemeGroupVersion.WithResource("secrets")
)

// source reads the VirtualMachine. A request for one that does not exist waits for it until its timeout, which is of use for GitOps and not for a user who has
// mistyped its name. A user who may not get it may capture it all the same, and gets nil.
func (c *capturing) source(ctx context.Context, client *cluster.Client, vm machine.Reference) (map[string]any, error) {
	if c.dryRun.Client() && len(c.include) == 0 {
		return nil, nil // it needs no cluster
	}
	object, err := client.Get(ctx, cluster.VirtualMachines, vm.Namespace, vm.Name)
	switch {
	case apierrors.IsForbidden(err) && len(c.include) == 0:
		return nil, nil
	case err != nil:
		return nil, cluster.Failed("reading VirtualMachine "+vm.String(), err)
	case object == nil:
		return nil, client.Absent(ctx, vm.Namespace, fmt.Errorf("VirtualMachine %s does not exist, so there is nothing to capture", vm))
	}
	return object, nil
}

// objects reads the objects of a VirtualMachine that the request contains, with the permissions of the user.
func (c *capturing) objects(ctx context.Context, client *cluster.Client, vm machine.Reference, object map[string]any) (found []any, err error) {
	if len(c.include) == 0 {
		return nil, nil
	}
	template := machine.MapAt(object, "spec", "template")
	if slices.Contains(c.include, includeServices) {
		if found, err = servicesOf(ctx, client, vm, machine.MapAt(template, "metadata", "labels")); err != nil {
			return nil, err
		}
	}
	if slices.Contains(c.include, includeSecrets) {
		named, err := secretsOf(ctx, client, vm.Namespace, machine.MapAt(template, "spec"))
		if err != nil {
			return nil, err
		}
		found = append(found, named...)
	}
	return found, nil
}

// servicesOf returns the Services that select the pods of a VirtualMachine.
func servicesOf(ctx context.Context, client *cluster.Client, vm machine.Reference, labels map[string]any) (found []any, err error) {
	ofPod := map[string]any{"kubevirt.io": "virt-launcher", "vm.kubevirt.io/name": vm.Name}
	maps.Copy(ofPod, labels)
	there := *client
	there.Namespace = vm.Namespace
	err = there.List(ctx, services, "", func(service map[string]any) error {
		if selects(machine.MapAt(service, "spec", "selector"), ofPod) {
			found = append(found, reduced("Service", service))
		}
		return nil
	})
	return found, err
}

// selects reports whether a selector selects these labels. A Service without a selector selects no pods.
func selects(selector, labels map[string]any) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

// secretsOf returns the Secrets that a VirtualMachine refers to, except for those that do not exist.
func secretsOf(ctx context.Context, client *cluster.Client, namespace string, guest map[string]any) (found []any, err error) {
	var names []string
	machine.NamedObjects(guest, func(kind string, in map[string]any, key string) {
		if name := machine.StringAt(in, key); kind == "Secret" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	})
	for _, name := range names {
		secret, err := client.Get(ctx, secrets, namespace, name)
		if err != nil {
			return nil, cluster.Failed("reading Secret "+namespace+"/"+name, err)
		}
		if secret != nil {
			found = append(found, reduced("Secret", secret))
		}
	}
	return found, nil
}

// reduced removes what the request need not contain: the state of the object, and of those who change it.
func reduced(kind string, object map[string]any) map[string]any {
	object["apiVersion"], object["kind"] = "v1", kind // Items of a list lack them.
	delete(object, "status")
	metadata := machine.MapAt(object, "metadata")
	maps.DeleteFunc(metadata, func(key string, _ any) bool { return key != "name" && key != "labels" && key != "annotations" })
	delete(machine.MapAt(metadata, "annotations"), corev1.LastAppliedConfigAnnotation)
	return object
}
