package objects

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Kinds are the kinds of objects that are created for VirtualMachines.
type Kinds struct {
	mapper    meta.RESTMapper
	permitted sets.Set[schema.GroupResource]
	lent      sets.Set[schema.GroupResource]
}

// NewKinds returns the kinds of resources such as secrets and networkpolicies.networking.k8s.io. Templates may lend the right to create those
// that are in lent too.
func NewKinds(mapper meta.RESTMapper, resources, lent []string) Kinds {
	return Kinds{mapper: mapper, permitted: Resources(resources), lent: Resources(lent)}
}

// Resources returns the resources with these names, such as secrets and networkpolicies.networking.k8s.io.
func Resources(texts []string) sets.Set[schema.GroupResource] {
	all := sets.Set[schema.GroupResource]{}
	for _, each := range texts {
		all.Insert(schema.ParseGroupResource(each))
	}
	return all
}

// Lent returns why templates may not lend the right to create a resource; empty if they may.
func (k Kinds) Lent(resource schema.GroupResource) Denied {
	if k.lent.Has(resource) {
		return ""
	}
	return Denied(fmt.Sprintf("templates lend no right to create %s in this cluster: a cluster admin can permit it in the values of Stencil's chart, objects.lentResources", resource))
}

// Denied is why no objects of a kind are created.
type Denied string

func (d Denied) Error() string { return string(d) }

// Resource returns where objects of a kind are created. The error is a Denied, or temporary: the API server did not answer.
func (k Kinds) Resource(apiVersion, kind string) (schema.GroupVersionResource, error) {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	mapping, err := k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	switch {
	case meta.IsNoMatchError(err):
		return schema.GroupVersionResource{}, Denied(fmt.Sprintf("this cluster does not serve kind %s in apiVersion %s", kind, apiVersion))
	case err != nil:
		return schema.GroupVersionResource{}, fmt.Errorf("finding the resource of kind %s: %w", kind, err)
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return schema.GroupVersionResource{}, Denied(fmt.Sprintf("kind %s has no namespace, and a VirtualMachine owns objects of its namespace only", kind))
	case !k.permitted.Has(mapping.Resource.GroupResource()):
		return schema.GroupVersionResource{}, Denied(fmt.Sprintf("templates create no %s in this cluster: a cluster admin can permit it in the values of Stencil's chart, objects.resources", mapping.Resource.GroupResource()))
	}
	return mapping.Resource, nil
}
