package cluster

import (
	"context"
	"fmt"

	instancetypeapi "kubevirt.io/api/instancetype"

	"github.com/vmstencil/stencil/cmd/stencilctl/offline"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Resolve implements sizing.Resolver.
func (s *Context) Resolve(ctx context.Context, r sizing.Reference) (map[string]any, error) {
	key := r
	key.Path = nil
	found := s.sizes.get(key, func() (found size) {
		found.object, found.err = s.resolve(ctx, r)
		return found
	})
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
	namespace := ""
	if r.Namespaced() {
		namespace = r.Namespace
	}
	object, err := s.client.Get(ctx, sizing.Resources[r.Kind], namespace, r.Name)
	if err != nil {
		return nil, err
	}
	if object == nil {
		return nil, errMissing
	}
	object["kind"] = r.Kind
	return offline.Sized(object), nil
}
