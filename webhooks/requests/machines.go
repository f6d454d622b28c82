package requests

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// APIServer reads VirtualMachines from the API server. The manager does not cache all of them, and capture requests
// tolerate the latency.
type APIServer struct{ client metadata.Interface }

// NewAPIServer returns an APIServer for a client configuration.
func NewAPIServer(config *rest.Config) (*APIServer, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client that looks for VirtualMachines: %w", err)
	}
	return &APIServer{client}, nil
}

// Exists implements VirtualMachines.
func (a *APIServer) Exists(ctx context.Context, namespace, name string) (bool, error) {
	_, err := a.client.Resource(schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}).
		Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for VirtualMachine %s/%s: %w", namespace, name, err)
	}
	return true, nil
}
