package policies_test

import (
	"context"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/test/controlplane"
)

var (
	namespaces     = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	vms            = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
	allApprovals   = schema.GroupVersionResource{Group: "stencil.kubevirt.io", Version: "v1alpha1", Resource: "templateapprovals"}
	clients        sync.Map
	dryRunOnServer = []string{metav1.DryRunAll}
)

// api returns a client of a user, of the administrator when nil. Fixtures and waits use it: kubectl takes a fifth of a second of a
// processor for each request.
func api(t *testing.T, as *controlplane.User) dynamic.Interface {
	t.Helper()
	config, key := shared.Plane(t).AdminConfig(), ""
	if as != nil {
		config, key = as.Config(), as.Name
	}
	if known, found := clients.Load(key); found {
		return known.(dynamic.Interface)
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	made, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	clients.Store(key, made)
	return made
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

// lasting is a context that cleanups can use, too.
func lasting(t *testing.T) context.Context { return context.WithoutCancel(t.Context()) }

// answered is the answer to a request as kubectl reports it.
func answered(err error) controlplane.Result {
	if err == nil {
		return controlplane.Result{}
	}
	return controlplane.Result{Code: 1, Stderr: err.Error()}
}

// discardApproval deletes an approval that may be gone.
func discardApproval(t *testing.T, name string) {
	t.Helper()
	err := api(t, nil).Resource(allApprovals).Delete(lasting(t), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}
