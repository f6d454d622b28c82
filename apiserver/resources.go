package apiserver

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/emicklei/go-restful/v3"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/metrics"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	templatev1beta1 "github.com/vmstencil/stencil/api/template/v1beta1"
)

// resource is one of those of each version. Those without verbs support only create.
type resource struct {
	name, singular, subresource string
	// verbs of a resource that is read; the verb of the path is the first.
	verbs []string
	// kind of the request or the response, in the group of the API if group is the zero value.
	kind           string
	group          schema.GroupVersion
	path           string
	doc, operation string
	// reads and writes are the types of the request and the response, code is the status of a successful response.
	reads, writes any
	code          int
	serve         restful.RouteFunction
	// off leaves the resource out of discovery.
	off bool
}

const (
	templates          = "virtualmachinetemplates"
	availableTemplates = "availabletemplates"
	defaults           = "defaults"
	namespace          = "namespace"
	name               = "name"
)

func (h *handler) resources() []resource {
	resources := []resource{
		{
			name: templates, subresource: "process", kind: "ProcessOptions",
			path:      "/namespaces/{namespace}/virtualmachinetemplates/{name}/process",
			doc:       "render a VirtualMachineTemplate and store nothing",
			operation: "connectNamespacedVirtualMachineTemplateProcess",
			reads:     v1beta1.ProcessOptions{}, writes: v1beta1.ProcessedVirtualMachineTemplate{}, code: http.StatusOK, serve: h.processing(h.process),
		},
		{
			name: templates, subresource: "create", kind: "ProcessOptions",
			path:      "/namespaces/{namespace}/virtualmachinetemplates/{name}/create",
			doc:       "create a VirtualMachine from a VirtualMachineTemplate",
			operation: "connectNamespacedVirtualMachineTemplateCreate",
			reads:     v1beta1.ProcessOptions{}, writes: v1beta1.ProcessedVirtualMachineTemplate{}, code: http.StatusOK, serve: h.processing(h.create),
		},
		{
			name: "processedtemplates", singular: "processedtemplate", kind: "ProcessedVirtualMachineTemplate",
			path:      "/namespaces/{namespace}/processedtemplates",
			doc:       "render a VirtualMachineTemplate that is sent, and store nothing",
			operation: "createNamespacedProcessedVirtualMachineTemplate",
			reads:     templatev1beta1.VirtualMachineTemplate{}, writes: v1beta1.ProcessedVirtualMachineTemplate{}, code: http.StatusCreated, serve: h.processing(h.processSent),
		},
		{
			name: defaults, singular: "default", kind: vmKind.Kind, group: kubevirtv1.SchemeGroupVersion,
			path:      "/namespaces/{namespace}/defaults",
			doc:       "fill in the defaults that the guest of a VirtualMachine sees, and store nothing",
			operation: "createNamespacedDefaultedVirtualMachine",
			reads:     kubevirtv1.VirtualMachine{}, writes: kubevirtv1.VirtualMachine{}, code: http.StatusCreated, serve: h.answering(h.defaults),
			off: h.options.Defaults == nil,
		},
	}
	if h.version == v1beta1.GroupVersion {
		resources = append(resources, h.availableResources()...)
	}
	return resources
}

// availableResources of templates that a user may use. The deprecated version does not have them.
func (h *handler) availableResources() []resource {
	list := resource{
		name: availableTemplates, singular: "availabletemplate", kind: "AvailableTemplate", verbs: []string{"list", "get"},
		path:      "/namespaces/{namespace}/availabletemplates",
		doc:       "list the VirtualMachineTemplates that the caller may use for a VirtualMachine in the namespace",
		operation: "listNamespacedAvailableTemplate",
		writes:    v1beta1.AvailableTemplateList{}, code: http.StatusOK, serve: h.answering(h.listAvailable),
	}
	one := list
	one.verbs, one.path, one.off = []string{"get"}, list.path+"/{name}", true
	one.doc, one.operation = "return one of them", "readNamespacedAvailableTemplate"
	one.writes, one.serve = v1beta1.AvailableTemplate{}, h.answering(h.getAvailable)
	return []resource{list, one}
}

// route adds the resource to a web service.
func (r resource) route(service *restful.WebService, version schema.GroupVersion) {
	verb, route := "POST", service.POST(r.path)
	if r.verbs != nil {
		verb, route = strings.ToUpper(r.verbs[0]), service.GET(r.path)
	}
	serve := metrics.InstrumentRouteFunc(verb, version.Group, version.Version, r.name, r.subresource, "resource", metrics.APIServerComponent, false, "", r.serve)
	route.To(serve).
		Doc(r.doc).
		Operation(r.operation+version.Version).
		Param(service.PathParameter(namespace, "namespace of the template, or of the VirtualMachine that is sent or created").DataType("string")).
		Returns(r.code, http.StatusText(r.code), r.writes).
		Writes(r.writes)
	if r.reads != nil {
		route.Reads(r.reads)
	}
	if strings.Contains(r.path, "{name}") {
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
		if each.off {
			continue
		}
		one := metav1.APIResource{
			Name: each.name, SingularName: each.singular, Namespaced: true,
			Group: each.group.Group, Version: each.group.Version, Kind: each.kind, Verbs: each.verbs,
		}
		if one.Verbs == nil {
			one.Verbs = metav1.Verbs{"create"}
		}
		if each.subresource != "" {
			one.Name += "/" + each.subresource
		}
		found = append(found, one)
	}
	return found
}

// aggregatedDiscovery is the other form of discovery. There a subresource requires a parent; clients ignore one without a kind.
func aggregatedDiscovery(version schema.GroupVersion, resources []resource) (apidiscoveryv2.APIVersionDiscovery, error) {
	found := listed(resources)
	for i := range found {
		if found[i].Group == "" {
			found[i].Group, found[i].Version = version.Group, version.Version
		}
	}
	converted, err := endpoints.ConvertGroupVersionIntoToDiscovery(found)
	if err != nil {
		return apidiscoveryv2.APIVersionDiscovery{}, fmt.Errorf("describing %s for discovery: %w", version, err)
	}
	return apidiscoveryv2.APIVersionDiscovery{Version: version.Version, Resources: converted, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}, nil
}
