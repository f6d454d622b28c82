package apiserver

import (
	"fmt"
	"net/http"

	"github.com/emicklei/go-restful/v3"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/metrics"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	templatev1beta1 "github.com/vmstencil/stencil/api/template/v1beta1"
)

// resource is one of the three of each version. They support only create.
type resource struct {
	name, subresource string
	kind              string
	path              string
	doc, operation    string
	// reads is the type of the request, code the status of a successful response.
	reads any
	code  int
	serve restful.RouteFunction
}

const (
	templates = "virtualmachinetemplates"
	namespace = "namespace"
	name      = "name"
)

func (h *handler) resources() []resource {
	return []resource{
		{
			name: templates, subresource: "process", kind: "ProcessOptions",
			path:      "/namespaces/{namespace}/virtualmachinetemplates/{name}/process",
			doc:       "render a VirtualMachineTemplate and store nothing",
			operation: "connectNamespacedVirtualMachineTemplateProcess",
			reads:     v1beta1.ProcessOptions{}, code: http.StatusOK, serve: h.answering(h.process),
		},
		{
			name: templates, subresource: "create", kind: "ProcessOptions",
			path:      "/namespaces/{namespace}/virtualmachinetemplates/{name}/create",
			doc:       "create a VirtualMachine from a VirtualMachineTemplate",
			operation: "connectNamespacedVirtualMachineTemplateCreate",
			reads:     v1beta1.ProcessOptions{}, code: http.StatusOK, serve: h.answering(h.create),
		},
		{
			name: "processedtemplates", kind: "ProcessedVirtualMachineTemplate",
			path:      "/namespaces/{namespace}/processedtemplates",
			doc:       "render a VirtualMachineTemplate that is sent, and store nothing",
			operation: "createNamespacedProcessedVirtualMachineTemplate",
			reads:     templatev1beta1.VirtualMachineTemplate{}, code: http.StatusCreated, serve: h.answering(h.processSent),
		},
	}
}

// route adds the resource to a web service.
func (r resource) route(service *restful.WebService, version schema.GroupVersion) {
	serve := metrics.InstrumentRouteFunc("POST", version.Group, version.Version, r.name, r.subresource, "resource", metrics.APIServerComponent, false, "", r.serve)
	route := service.POST(r.path).To(serve).
		Doc(r.doc).
		Operation(r.operation+version.Version).
		Param(service.PathParameter(namespace, "namespace of the template").DataType("string")).
		Reads(r.reads).
		Returns(r.code, http.StatusText(r.code), v1beta1.ProcessedVirtualMachineTemplate{}).
		Writes(v1beta1.ProcessedVirtualMachineTemplate{})
	if r.subresource != "" {
		route.Param(service.PathParameter(name, "name of the template").DataType("string"))
	}
	if r.subresource == "create" {
		route.Param(service.QueryParameter("dryRun", "All: everything is done and nothing is stored").DataType("string"))
	}
	service.Route(route)
}

// listed returns the resources in the form of discovery, without their parent: a second virtualmachinetemplates would conflict with that of the
// CustomResourceDefinition, and it could be neither read nor listed.
func listed(resources []resource) []metav1.APIResource {
	var found []metav1.APIResource
	for _, each := range resources {
		one := metav1.APIResource{Name: each.name, SingularName: "", Namespaced: true, Kind: each.kind, Verbs: metav1.Verbs{"create"}}
		if each.subresource != "" {
			one.Name += "/" + each.subresource
		} else {
			one.SingularName = "processedtemplate"
		}
		found = append(found, one)
	}
	return found
}

// aggregatedDiscovery is the other form of discovery. There a subresource requires a parent; clients ignore one without a kind.
func aggregatedDiscovery(version schema.GroupVersion, resources []resource) (apidiscoveryv2.APIVersionDiscovery, error) {
	found := listed(resources)
	for i := range found {
		found[i].Group, found[i].Version = version.Group, version.Version
	}
	converted, err := endpoints.ConvertGroupVersionIntoToDiscovery(found)
	if err != nil {
		return apidiscoveryv2.APIVersionDiscovery{}, fmt.Errorf("describing %s for discovery: %w", version, err)
	}
	return apidiscoveryv2.APIVersionDiscovery{Version: version.Version, Resources: converted, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}, nil
}
