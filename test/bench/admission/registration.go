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
)

// admissionResources are all kinds by which something takes part in admission, in an order in which they can be created.
var admissionResources = []schema.GroupVersionResource{
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
}

// registration is how the API server knows of Stencil: the webhook configurations and policies of the chart. Without them the
// cluster is one without Stencil, though the manager runs.
type registration struct {
	client dynamic.Interface
	// resources are the kinds that come and go.
	resources []schema.GroupVersionResource
	objects   map[schema.GroupVersionResource][]unstructured.Unstructured
	installed bool
	// applied says whether the API server admits as with Stencil. It learns of changes from a watch, a little later.
	applied func(ctx context.Context) (bool, error)
}

// judgement are the webhooks that judge, without those that render.
var judgement = []schema.GroupVersionResource{{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}}

// settleLimit bounds the wait until a change of the registration has arrived.
const settleLimit = time.Minute

// recordRegistration takes down everything that the release has registered. It must be installed and in effect.
func recordRegistration(
	ctx context.Context, client dynamic.Interface, release string, resources []schema.GroupVersionResource, applied func(context.Context) (bool, error),
) (*registration, error) {
	r := &registration{client: client, resources: resources, objects: map[schema.GroupVersionResource][]unstructured.Unstructured{}, installed: true, applied: applied}
	count := 0
	for _, resource := range resources {
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + release})
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", resource.Resource, err)
		}
		for _, object := range list.Items {
			object.SetResourceVersion("")
			object.SetUID("")
			object.SetCreationTimestamp(metav1.Time{})
			object.SetManagedFields(nil)
			unstructured.RemoveNestedField(object.Object, "status")
			r.objects[resource] = append(r.objects[resource], object)
			count++
		}
	}
	if count == 0 {
		return nil, fmt.Errorf("release %q has registered nothing for admission", release)
	}
	return r, nil
}

// set installs the registration or takes it away, and returns when the API server acts accordingly.
func (r *registration) set(ctx context.Context, installed bool) error {
	if r.installed == installed {
		return nil
	}
	for _, resource := range r.resources {
		for i := range r.objects[resource] {
			object := &r.objects[resource][i]
			var err error
			if installed {
				_, err = r.client.Resource(resource).Create(ctx, object, metav1.CreateOptions{})
			} else {
				err = r.client.Resource(resource).Delete(ctx, object.GetName(), metav1.DeleteOptions{})
			}
			if err != nil {
				return fmt.Errorf("changing the registration of %s %s: %w", resource.Resource, object.GetName(), err)
			}
		}
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, settleLimit, true, func(ctx context.Context) (bool, error) {
		applied, err := r.applied(ctx)
		return applied == installed, err
	})
	if err != nil {
		return fmt.Errorf("waiting until the API server admits with Stencil: %t: %w", installed, err)
	}
	r.installed = installed
	return nil
}
