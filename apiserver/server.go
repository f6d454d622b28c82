package apiserver

import (
	"context"
	"fmt"
	"time"

	"github.com/emicklei/go-restful/v3"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/vmstencil/stencil/api/subresources/v1alpha1"
	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// versions are the served versions, the preferred one first.
var versions = []schema.GroupVersion{v1beta1.GroupVersion, v1alpha1.GroupVersion}

// Templates is the source of compiled templates.
type Templates interface {
	Synced() bool
	Wait(ctx context.Context, namespace, name string, timeout time.Duration) *templatecache.Template
	// List returns all templates, in a slice that the caller may change.
	List() []*templatecache.Template
}

// Creator creates VirtualMachines on behalf of a user; a Delegate does.
type Creator interface {
	// Preview returns the decisions about the VirtualMachine if the user created it. An error is that of the API server when it is not about the
	// VirtualMachine.
	Preview(ctx context.Context, user authenticationv1.UserInfo, namespace string, machine []byte) ([]v1beta1.Decision, error)
	// Create returns the VirtualMachine as it is stored, as JSON, and the warnings of the API server. An error of the API server is its own status.
	Create(ctx context.Context, user authenticationv1.UserInfo, namespace string, machine []byte, dryRun []string) (stored []byte, warnings []string, err error)
}

// Options are what the API needs.
type Options struct {
	Templates Templates
	Approvals Approvals
	Creator   Creator
	// Sizes resolves the instance types and preferences of VirtualMachines for rules.
	Sizes sizing.Resolver
	// Authorizer decides whether a user may use a template, and create in another namespace.
	Authorizer authorizer.Authorizer
	// ObjectResources are the resources of objects that the cluster creates with a VirtualMachine.
	ObjectResources sets.Set[schema.GroupResource]
	// Defaults fill in defaults. If nil, requests for them are answered with 404.
	Defaults *Defaults
	// Suffix makes the random end of a generated name; nil means the one that
	// Kubernetes itself uses.
	Suffix func() string
}

// Codecs returns the serializers of everything that this package does not write itself: errors and discovery.
func Codecs() (*runtime.Scheme, serializer.CodecFactory, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, serializer.CodecFactory{}, fmt.Errorf("filling the scheme: %w", err)
		}
	}
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, unversioned)
	scheme.AddUnversionedTypes(unversioned, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme, serializer.NewCodecFactory(scheme), nil
}

// Install adds the API to a server.
func Install(server *genericapiserver.GenericAPIServer, options Options) error {
	if options.Suffix == nil {
		options.Suffix = func() string { return rand.String(machine.SuffixLength) }
	}
	group := metav1.APIGroup{Name: v1beta1.GroupName}
	for _, version := range versions {
		handler := &handler{options: options, serializer: server.Serializer, version: version}
		resources := handler.resources()
		service := handler.service(resources)
		discovery.NewAPIVersionHandler(server.Serializer, version, discovery.APIResourceListerFunc(func() []metav1.APIResource {
			return listed(resources)
		})).AddToWebService(service)
		server.Handler.GoRestfulContainer.Add(service)
		aggregated, err := aggregatedDiscovery(version, resources)
		if err != nil {
			return err
		}
		server.AggregatedDiscoveryGroupManager.AddGroupVersion(version.Group, aggregated)
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: version.String(), Version: version.Version})
	}
	group.PreferredVersion = group.Versions[0]
	server.DiscoveryGroupManager.AddGroup(group)
	server.Handler.GoRestfulContainer.Add(discovery.NewAPIGroupHandler(server.Serializer, group).WebService())
	return nil
}

// handler serves one version.
type handler struct {
	options    Options
	serializer runtime.NegotiatedSerializer
	version    schema.GroupVersion
	// descriptions of templates that users may use.
	descriptions descriptions
}

// service is the web service of the version, with a route for each resource.
func (h *handler) service(resources []resource) *restful.WebService {
	service := new(restful.WebService)
	service.Path("/apis/"+h.version.String()).
		Doc("API at /apis/"+h.version.String()).
		Consumes("*/*").
		Produces(runtime.ContentTypeJSON, runtime.ContentTypeYAML).
		ApiVersion(h.version.String())
	for _, each := range resources {
		each.route(service, h.version)
	}
	return service
}
