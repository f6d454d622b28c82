package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	instancetypeapi "kubevirt.io/api/instancetype"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"

	"github.com/vmstencil/stencil/cmd/stencilctl/offline"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// resources maps the kinds of instance types and preferences to their resources, and to whether
// they are namespaced.
var resources = map[string]struct {
	schema.GroupVersionResource
	namespaced bool
}{
	sizing.KindInstancetype:        {instancetypev1beta1.SchemeGroupVersion.WithResource(instancetypeapi.PluralResourceName), true},
	sizing.KindClusterInstancetype: {instancetypev1beta1.SchemeGroupVersion.WithResource(instancetypeapi.ClusterPluralResourceName), false},
	sizing.KindPreference:          {instancetypev1beta1.SchemeGroupVersion.WithResource(instancetypeapi.PluralPreferenceResourceName), true},
	sizing.KindClusterPreference:   {instancetypev1beta1.SchemeGroupVersion.WithResource(instancetypeapi.ClusterPluralPreferenceResourceName), false},
}

// Resolve implements sizing.Resolver.
func (s *Context) Resolve(ctx context.Context, r sizing.Reference) (map[string]any, error) {
	key := r
	key.Path = nil
	if cached, found := s.sizes[key]; found {
		return cached.object, cached.err
	}
	var found size
	found.object, found.err = s.resolve(ctx, r)
	s.sizes[key] = found
	return found.object, found.err
}

func (s *Context) resolve(ctx context.Context, r sizing.Reference) (map[string]any, error) {
	if r.Revision != "" {
		revision, err := s.client.Get(ctx, revisions, r.Namespace, r.Revision)
		if err != nil {
			return nil, err
		}
		metadata, _ := revision["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		data, _ := revision["data"].(map[string]any)
		switch {
		case data == nil:
			return nil, fmt.Errorf("ControllerRevision %s does not exist", r.Revision)
		case !r.Loose || machine.StringAt(labels, instancetypeapi.ControllerRevisionObjectNameLabel) == r.Name:
			return offline.Sized(data), nil
		}
	}
	resource := resources[r.Kind]
	namespace := ""
	if resource.namespaced {
		namespace = r.Namespace
	}
	object, err := s.client.Get(ctx, resource.GroupVersionResource, namespace, r.Name)
	if err != nil {
		return nil, err
	}
	if object == nil {
		return nil, errMissing
	}
	object["kind"] = r.Kind
	return offline.Sized(object), nil
}
