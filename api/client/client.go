// Package client is a typed Go client for Stencil: a generated clientset for its
// CustomResourceDefinitions, and calls for process, create, processedtemplates, defaults and
// availabletemplates of the aggregated API.
//
// It is a separate Go module, so that a program that needs only the types of package api
// does not depend on client-go.
package client

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/api/client/clientset"
	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	templatev1beta1 "github.com/vmstencil/stencil/api/template/v1beta1"
)

// The resources of the aggregated API.
const (
	templates          = "virtualmachinetemplates"
	processedTemplates = "processedtemplates"
	defaults           = "defaults"
	availableTemplates = "availabletemplates"
)

// Client is a client for all APIs that Stencil serves. It is safe for concurrent use.
type Client struct {
	// Interface is the clientset of the CustomResourceDefinitions.
	clientset.Interface
	subresources rest.Interface
}

// New returns a Client for the cluster of config. Warnings of the API server go to the
// warning handler of config.
func New(config *rest.Config) (*Client, error) {
	config = rest.CopyConfig(config)
	// CustomResourceDefinitions and the aggregated API support JSON only.
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	set, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the clientset: %w", err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, templatev1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("filling the scheme: %w", err)
		}
	}
	config.GroupVersion = &v1beta1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	subresources, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of the aggregated API: %w", err)
	}
	return &Client{Interface: set, subresources: subresources}, nil
}

// Subresources returns the aggregated API for the templates of one namespace.
func (c *Client) Subresources(namespace string) Subresources {
	return Subresources{client: c, namespace: namespace}
}

// Subresources processes templates of one namespace, and creates VirtualMachines from them.
type Subresources struct {
	client    *Client
	namespace string
}

// Process renders a stored template and stores nothing. It requires permission to create
// virtualmachinetemplates/process. Errors are those of the API server, with a cause for
// each invalid parameter.
func (s Subresources) Process(ctx context.Context, template string, options *v1beta1.ProcessOptions) (*v1beta1.ProcessedVirtualMachineTemplate, error) {
	return do(ctx, s.call(template, "process", options))
}

// Create renders a stored template, creates the VirtualMachine and returns it. It
// requires permission to create virtualmachinetemplates/create, and none on
// VirtualMachines. Errors are those of the API server, for instance when admission denies
// the VirtualMachine.
func (s Subresources) Create(ctx context.Context, template string, options *v1beta1.ProcessOptions, how metav1.CreateOptions) (*v1beta1.ProcessedVirtualMachineTemplate, error) {
	request := s.call(template, "create", options)
	for _, value := range how.DryRun {
		request.Param("dryRun", value)
	}
	return do(ctx, request)
}

// ProcessTemplate renders a template that is not stored, with the values that its
// parameters have. It requires permission to create processedtemplates.
func (s Subresources) ProcessTemplate(ctx context.Context, template *templatev1beta1.VirtualMachineTemplate) (*v1beta1.ProcessedVirtualMachineTemplate, error) {
	return do(ctx, s.client.subresources.Post().Namespace(s.namespace).Resource(processedTemplates).Body(template))
}

// FillDefaults returns a VirtualMachine with the defaults that its guest sees, as it would be
// stored if it were created in the namespace, and stores nothing. Its reasons for fields that are
// left empty are warnings. It requires permission to create defaults. Errors are those of the API
// server: NotFound if defaults are not filled in on the cluster, Invalid with a cause for each
// invalid field, ServiceUnavailable or Timeout while they cannot be filled in.
func (s Subresources) FillDefaults(ctx context.Context, vm *kubevirtv1.VirtualMachine) (*kubevirtv1.VirtualMachine, error) {
	vm = vm.DeepCopy()
	vm.SetGroupVersionKind(kubevirtv1.VirtualMachineGroupVersionKind)
	body, err := json.Marshal(vm)
	if err != nil {
		return nil, fmt.Errorf("encoding the VirtualMachine: %w", err)
	}
	result := s.client.subresources.Post().Namespace(s.namespace).Resource(defaults).Body(body).Do(ctx)
	// Raw has an error without the message of the server.
	if err := result.Error(); err != nil {
		return nil, err
	}
	answer, err := result.Raw()
	if err != nil {
		return nil, err
	}
	filled := &kubevirtv1.VirtualMachine{}
	if err := json.Unmarshal(answer, filled); err != nil {
		return nil, fmt.Errorf("decoding the VirtualMachine: %w", err)
	}
	return filled, nil
}

// AvailableTemplates lists the templates that the caller may use for VirtualMachines in the
// namespace, with the values of their parameters that the approvals of the namespace allow. It
// requires permission to list availabletemplates, and none to read the templates. Of the options,
// the label selector and a field selector of metadata.name have an effect. It reads all pages.
func (s Subresources) AvailableTemplates(ctx context.Context, options metav1.ListOptions) (*v1beta1.AvailableTemplateList, error) {
	found := &v1beta1.AvailableTemplateList{}
	for {
		request := s.client.subresources.Get().Namespace(s.namespace).Resource(availableTemplates)
		for name, value := range map[string]string{"labelSelector": options.LabelSelector, "fieldSelector": options.FieldSelector, "continue": options.Continue} {
			if value != "" {
				request.Param(name, value)
			}
		}
		page := &v1beta1.AvailableTemplateList{}
		if err := request.Do(ctx).Into(page); err != nil {
			return nil, err
		}
		page.Items = append(found.Items, page.Items...)
		if found = page; page.Continue == "" {
			return found, nil
		}
		options.Continue = page.Continue
	}
}

func (s Subresources) call(template, subresource string, options *v1beta1.ProcessOptions) *rest.Request {
	if options == nil {
		options = &v1beta1.ProcessOptions{}
	}
	return s.client.subresources.Post().Namespace(s.namespace).Resource(templates).Name(template).SubResource(subresource).Body(options)
}

func do(ctx context.Context, request *rest.Request) (*v1beta1.ProcessedVirtualMachineTemplate, error) {
	processed := &v1beta1.ProcessedVirtualMachineTemplate{}
	if err := request.Do(ctx).Into(processed); err != nil {
		return nil, err
	}
	return processed, nil
}
