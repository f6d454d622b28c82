package admission

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/vmstencil/stencil/test/install"
)

// The kinds that register webhooks and policies.
var (
	policiesOfAPIServer      = resource("validatingadmissionpolicies")
	bindingsOfPolicies       = resource("validatingadmissionpolicybindings")
	validatingConfigurations = resource("validatingwebhookconfigurations")
	mutatingConfigurations   = resource("mutatingwebhookconfigurations")
)

func resource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: name}
}

// registered is an object that registers webhooks or policies with the API server.
type registered struct {
	resource schema.GroupVersionResource
	object   *unstructured.Unstructured
}

// registration is a set of objects that is installed or not. With none of Stencil's sets installed the cluster is one without Stencil, though the
// manager runs.
type registration struct {
	client dynamic.Interface
	// objects are in an order in which they can be created.
	objects   []registered
	installed bool
	// effect is how much of the objects the API server enforces: all when it is whole, and nothing when it is 0. It observes changes from a watch, a
	// little later.
	effect func(context.Context) (int, error)
	whole  int
}

// syncLimit bounds the wait until the API server observes a change of a registration.
const syncLimit = time.Minute

// recorded returns the objects of these kinds that Stencil has registered.
func recorded(ctx context.Context, client dynamic.Interface, resources ...schema.GroupVersionResource) ([]registered, error) {
	var objects []registered
	for _, resource := range resources {
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + install.Release})
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", resource.Resource, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			object.SetResourceVersion("")
			object.SetUID("")
			object.SetCreationTimestamp(metav1.Time{})
			object.SetManagedFields(nil)
			unstructured.RemoveNestedField(object.Object, "status")
			objects = append(objects, registered{resource, object})
		}
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("release %q has registered nothing for admission", install.Release)
	}
	return objects, nil
}

// webhook returns the entry of that name among all objects.
func webhook(objects []registered, name string) (map[string]any, error) {
	for _, each := range objects {
		webhooks, _, _ := unstructured.NestedSlice(each.object.Object, "webhooks")
		for _, item := range webhooks {
			if entry, _ := item.(map[string]any); entry["name"] == name {
				return entry, nil
			}
		}
	}
	return nil, fmt.Errorf("there is no webhook %s", name)
}

// set installs or deletes the registration, and returns when the API server enforces the change.
func (r *registration) set(ctx context.Context, installed bool) error {
	if r.installed == installed {
		return nil
	}
	for _, each := range r.objects {
		var err error
		if installed {
			_, err = r.client.Resource(each.resource).Create(ctx, each.object, metav1.CreateOptions{})
		} else {
			err = r.client.Resource(each.resource).Delete(ctx, each.object.GetName(), metav1.DeleteOptions{})
		}
		if err != nil {
			return fmt.Errorf("changing the registration of %s %s: %w", each.resource.Resource, each.object.GetName(), err)
		}
	}
	wanted, last := 0, 0
	if installed {
		wanted = r.whole
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, syncLimit, true, func(ctx context.Context) (_ bool, err error) {
		last, err = r.effect(ctx)
		return last == wanted, err
	})
	if err != nil {
		return fmt.Errorf("waiting until the API server knows of %s: %t: it does %d of %d: %w",
			r.objects[len(r.objects)-1].object.GetName(), installed, last, wanted, err)
	}
	r.installed = installed
	return nil
}
