package apiserver

import (
	"context"
	"fmt"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/internal/delegation"
)

// Delegate creates VirtualMachines as the server, on behalf of users. It implements Creator.
type Delegate struct {
	client rest.Interface
	server delegation.Server
}

// NewDelegate returns a Delegate. config is the server's own; server is the user name of the server.
func NewDelegate(config *rest.Config, server delegation.Server) (*Delegate, error) {
	config = rest.CopyConfig(config)
	config.APIPath = "/apis"
	config.GroupVersion = &schema.GroupVersion{Group: "kubevirt.io", Version: "v1"}
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	// Warnings are for the user, not for the log.
	config.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making the client that creates VirtualMachines: %w", err)
	}
	return &Delegate{client: client, server: server}, nil
}

// Create implements Creator.
func (d *Delegate) Create(ctx context.Context, user authenticationv1.UserInfo, namespace string, vm []byte, dryRun []string) ([]byte, []string, error) {
	headers, err := delegation.Headers(d.server, user)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	return d.post(ctx, headers, namespace, vm, dryRun)
}

// post returns the warnings of the API server also with an error.
func (d *Delegate) post(ctx context.Context, headers http.Header, namespace string, vm []byte, dryRun []string) ([]byte, []string, error) {
	request := d.client.Post().Namespace(namespace).Resource("virtualmachines").Body(vm).
		// The client that sent the request can retry better than this server.
		MaxRetries(0)
	for key, values := range headers {
		request.SetHeader(key, values...)
	}
	for _, value := range dryRun {
		request.Param("dryRun", value)
	}
	result := request.Do(ctx)
	var warnings []string
	for _, each := range result.Warnings() {
		warnings = append(warnings, each.Text)
	}
	if err := result.Error(); err != nil {
		return nil, warnings, err
	}
	stored, err := result.Raw()
	return stored, warnings, err
}
