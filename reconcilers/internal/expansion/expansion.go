// Package expansion has KubeVirt replace the names of an instance type and a preference in a VirtualMachine by their content.
package expansion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Resource is the endpoint of KubeVirt's own API server, which has no stored objects.
var Resource = schema.GroupVersionResource{Group: "subresources.kubevirt.io", Version: "v1", Resource: "expand-vm-spec"}

// Client calls the endpoint.
type Client struct{ client rest.Interface }

// New returns a Client for the API server of a configuration.
func New(config *rest.Config) (*Client, error) {
	config = rest.CopyConfig(config)
	// No client-side limit: the API server has limits of its own.
	config.QPS = -1
	version := Resource.GroupVersion()
	config.GroupVersion = &version
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme.Scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of KubeVirt's subresources: %w", err)
	}
	return &Client{client}, nil
}

// Expand returns the VirtualMachine without references to an instance type and a preference, and with their content.
func (c *Client) Expand(ctx context.Context, namespace string, vm map[string]any) (map[string]any, error) {
	raw, err := json.Marshal(vm)
	if err != nil {
		return nil, fmt.Errorf("encoding the VirtualMachine: %w", err)
	}
	answer, err := c.client.Put().Namespace(namespace).Resource(Resource.Resource).Body(raw).SetHeader("Content-Type", "application/json").DoRaw(ctx)
	if err != nil {
		return nil, explained(err, answer)
	}
	expanded, err := machine.Decode(answer)
	if err != nil {
		return nil, fmt.Errorf("reading KubeVirt's answer: %w", err)
	}
	return expanded, nil
}

// explained sets the message of an error to KubeVirt's, which client-go omits.
func explained(err error, answer []byte) error {
	var status *apierrors.StatusError
	var response metav1.Status
	if errors.As(err, &status) && json.Unmarshal(answer, &response) == nil && response.Message != "" {
		status.ErrStatus.Message = response.Message
	}
	return err
}
