package policies_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/test/controlplane"
)

var (
	namespaces   = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMaps   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	instances    = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}
	kubeVirts    = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "kubevirts"}
	vms          = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
	allApprovals = schema.GroupVersionResource{Group: "stencil.kubevirt.io", Version: "v1alpha1", Resource: "templateapprovals"}

	clusterRoleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}

	admissionPolicies = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}

	clients sync.Map
)

// api returns a client of a user of the shared plane, of the administrator when nil.
func api(t *testing.T, as *controlplane.User) dynamic.Interface {
	t.Helper()
	if known, found := clients.Load(as); found {
		return known.(dynamic.Interface)
	}
	config := shared.Plane(t).AdminConfig()
	if as != nil {
		config = as.Config()
	}
	made := clientOf(t, config)
	clients.Store(as, made)
	return made
}

func clientOf(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	made, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// requests are sent to one namespace, an empty one for cluster-scoped objects. They are what kubectl would send, without its process, which takes a
// fifth of a second of processor time.
type requests struct {
	t         *testing.T
	client    dynamic.Interface
	namespace string
	dryRun    []string
	// lax makes the API server accept unknown fields, and null in fields that cannot be null.
	lax bool
}

// acting returns the requests of a user to a namespace, of the administrator when nil.
func acting(t *testing.T, as *controlplane.User, namespace string) requests {
	t.Helper()
	return requests{t: t, client: api(t, as), namespace: namespace}
}

// dry returns requests of a user that store nothing.
func dry(t *testing.T, as *controlplane.User, namespace string) requests {
	t.Helper()
	return acting(t, as, namespace).dry()
}

func (r requests) dry() requests {
	r.dryRun = []string{metav1.DryRunAll}
	return r
}

// impersonating returns requests of the administrator in the name of another user.
func impersonating(t *testing.T, namespace, name string, groups ...string) requests {
	t.Helper()
	config := shared.Plane(t).AdminConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: groups}
	return requests{t: t, client: clientOf(t, config), namespace: namespace}
}

func (r requests) to(resource schema.GroupVersionResource) dynamic.ResourceInterface {
	return r.client.Resource(resource).Namespace(r.namespace)
}

// about returns an object from JSON, and the client of its kind.
func (r requests) about(manifest string) (dynamic.ResourceInterface, *unstructured.Unstructured) {
	r.t.Helper()
	object := unstructuredOf(r.t, manifest)
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	return r.to(resource), object
}

func (r requests) validation() string {
	if r.lax {
		return metav1.FieldValidationIgnore
	}
	return metav1.FieldValidationStrict
}

func (r requests) create(manifest string) controlplane.Result {
	r.t.Helper()
	to, object := r.about(manifest)
	_, err := to.Create(lasting(r.t), object, metav1.CreateOptions{DryRun: r.dryRun, FieldValidation: r.validation()})
	return answered(err)
}

// apply is server-side apply that takes fields from other managers.
func (r requests) apply(manifest string) controlplane.Result {
	r.t.Helper()
	to, object := r.about(manifest)
	_, err := to.Apply(lasting(r.t), object.GetName(), object, metav1.ApplyOptions{FieldManager: "test", Force: true, DryRun: r.dryRun})
	return answered(err)
}

// replace replaces an object, or one of its subresources, as it is stored at the time.
func (r requests) replace(manifest string, subresources ...string) controlplane.Result {
	r.t.Helper()
	to, object := r.about(manifest)
	stored, err := to.Get(lasting(r.t), object.GetName(), metav1.GetOptions{})
	if err == nil {
		object.SetResourceVersion(stored.GetResourceVersion())
		_, err = to.Update(lasting(r.t), object, metav1.UpdateOptions{DryRun: r.dryRun}, subresources...)
	}
	return answered(err)
}

// patch sends a merge patch to an object, or to one of its subresources.
func (r requests) patch(resource schema.GroupVersionResource, name, change string, subresources ...string) controlplane.Result {
	r.t.Helper()
	_, err := r.to(resource).Patch(lasting(r.t), name, types.MergePatchType, []byte(change), metav1.PatchOptions{DryRun: r.dryRun}, subresources...)
	return answered(err)
}

// patchJSON sends a JSON patch.
func (r requests) patchJSON(resource schema.GroupVersionResource, name, change string) controlplane.Result {
	r.t.Helper()
	_, err := r.to(resource).Patch(lasting(r.t), name, types.JSONPatchType, []byte(change), metav1.PatchOptions{DryRun: r.dryRun})
	return answered(err)
}

// label changes labels as kubectl does: each change is KEY=VALUE, or KEY- to remove a label.
func (r requests) label(resource schema.GroupVersionResource, name string, changes ...string) controlplane.Result {
	r.t.Helper()
	labels := object{}
	for _, change := range changes {
		if key, value, sets := strings.Cut(change, "="); sets {
			labels[key] = value
		} else {
			labels[strings.TrimSuffix(change, "-")] = nil
		}
	}
	return r.patch(resource, name, encode(object{"metadata": object{"labels": labels}}))
}

func (r requests) delete(resource schema.GroupVersionResource, name string) controlplane.Result {
	r.t.Helper()
	return answered(r.to(resource).Delete(lasting(r.t), name, metav1.DeleteOptions{DryRun: r.dryRun}))
}

// get returns an object that has to be there.
func (r requests) get(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	r.t.Helper()
	found, err := r.to(resource).Get(lasting(r.t), name, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

// exists reports whether there is such an object.
func (r requests) exists(resource schema.GroupVersionResource, name string) bool {
	r.t.Helper()
	_, err := r.to(resource).Get(lasting(r.t), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		r.t.Fatal(err)
	}
	return err == nil
}

// field returns the text of a field of an object that has to be there, empty when it has no such field.
func (r requests) field(resource schema.GroupVersionResource, name string, path ...string) string {
	r.t.Helper()
	return text(r.get(resource, name), path...)
}

// text is the text of a field, empty when there is none.
func text(of *unstructured.Unstructured, path ...string) string {
	value, found, err := unstructured.NestedFieldNoCopy(of.Object, path...)
	if err != nil || !found {
		return ""
	}
	return fmt.Sprint(value)
}

// mustPass fails the test for a request that was denied.
func mustPass(t *testing.T, result controlplane.Result) {
	t.Helper()
	if complaint := (denial{}).complaint(result); complaint != "" {
		t.Fatal(complaint)
	}
}

// unstructuredOf reads JSON.
func unstructuredOf(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	read := &unstructured.Unstructured{}
	if err := read.UnmarshalJSON([]byte(manifest)); err != nil {
		t.Fatal(err)
	}
	return read
}

// lasting returns a context that cleanups can use, too.
func lasting(t *testing.T) context.Context { return context.WithoutCancel(t.Context()) }

// answered converts the response of a request to the result of kubectl.
func answered(err error) controlplane.Result {
	if err == nil {
		return controlplane.Result{}
	}
	return controlplane.Result{Code: 1, Stderr: err.Error()}
}

// discardApproval deletes an approval that may no longer exist.
func discardApproval(t *testing.T, name string) {
	t.Helper()
	err := api(t, nil).Resource(allApprovals).Delete(lasting(t), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// enforce changes the enforcement of an approval.
func enforce(t *testing.T, approval, enforcement string) {
	t.Helper()
	mustPass(t, acting(t, nil, "").patch(allApprovals, approval, encode(object{"spec": object{"enforcement": enforcement}})))
}
