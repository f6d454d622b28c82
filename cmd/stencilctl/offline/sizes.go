package offline

import (
	"context"
	"errors"
	"slices"

	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

var errNoFile = errors.New("no given file holds it")

// Resolve implements sizing.Resolver. If no file holds the revision, the object that it was
// made of is used.
func (s *Fixture) Resolve(_ context.Context, r sizing.Reference) (map[string]any, error) {
	if r.Revision != "" {
		revision := s.find(func(o *source.Object) bool {
			return o.Kind == kindRevision && o.Name() == r.Revision && o.Namespace() == r.Namespace
		})
		if data, _ := revision["data"].(map[string]any); data != nil {
			return Sized(data), nil
		}
	}
	namespaced := r.Kind == sizing.KindInstancetype || r.Kind == sizing.KindPreference
	found := s.find(func(o *source.Object) bool {
		return o.Kind == r.Kind && o.Name() == r.Name && (!namespaced || o.Namespace() == r.Namespace || o.Namespace() == "")
	})
	if found == nil {
		return nil, errNoFile
	}
	return Sized(found), nil
}

// Sized returns the part of an instance type or a preference that is in the input of policies.
func Sized(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	retained := map[string]any{"labels": map[string]any{}, "annotations": map[string]any{}}
	for _, key := range []string{"name", "namespace", "labels", "annotations"} {
		if value, found := metadata[key]; found {
			retained[key] = value
		}
	}
	return map[string]any{"kind": object["kind"], "metadata": retained, "spec": object["spec"]}
}

func (s *Fixture) find(is func(*source.Object) bool) map[string]any {
	i := slices.IndexFunc(s.sizes, func(o source.Object) bool { return is(&o) })
	if i < 0 {
		return nil
	}
	return s.sizes[i].Content
}
