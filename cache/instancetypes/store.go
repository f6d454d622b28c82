package instancetypes

import (
	"context"
	"encoding/json"
	"fmt"
	"unique"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	instancetypeapi "kubevirt.io/api/instancetype"
)

// wire holds the fields that are read of an instance type or a preference.
type wire struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec map[string]any `json:"spec"`
}

// object returns the input of policies.
func (w wire) object() map[string]any {
	metadata := map[string]any{"name": w.Metadata.Name, "labels": texts(w.Metadata.Labels), "annotations": texts(w.Metadata.Annotations)}
	if w.Metadata.Namespace != "" {
		metadata["namespace"] = w.Metadata.Namespace
	}
	return map[string]any{"kind": w.Kind, "metadata": metadata, "spec": w.Spec}
}

func texts(in map[string]string) map[string]any {
	out := make(map[string]any, len(in))
	for key, value := range in {
		if key != corev1.LastAppliedConfigAnnotation {
			out[key] = value
		}
	}
	return out
}

// store stores the objects of the reflector of one kind.
type store struct {
	index *index
	kind  string
}

var (
	_ cache.ReflectorStore    = &store{}
	_ cache.TransformingStore = &store{}
)

// watching returns the source. The returned source also detects that the kind is not served.
func (s *store) watching(source cache.ListerWatcher) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := cache.ToListerWatcherWithContext(source).ListWithContext(ctx, options)
			if apierrors.IsNotFound(err) {
				s.markUnserved()
			}
			return list, err
		},
		WatchFuncWithContext: cache.ToListerWatcherWithContext(source).WatchWithContext,
	}
}

// markUnserved marks the kind as not served and removes its objects.
func (s *store) markUnserved() {
	if s.index.isMissing(s.kind) {
		return
	}
	s.index.change(s.kind, func(target *collection) {
		target.missing, target.synced = true, false
		clear(target.entries)
	})
}

// Transformer reduces objects while the first list streams in.
func (s *store) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return s.entry(object) }
}

func (s *store) entry(object any) (entry, error) {
	switch o := object.(type) {
	case entry:
		return o, nil
	case *unstructured.Unstructured:
		if s.kind == kindRevision {
			return revisionEntry(o)
		}
		return liveEntry(s.kind, o)
	default:
		return entry{}, fmt.Errorf("instance type cache cannot store a %T", object)
	}
}

// liveEntry encodes and decodes the object as JSON, so that its numbers have the same types as those of a revision.
func liveEntry(kind string, o *unstructured.Unstructured) (entry, error) {
	raw, err := json.Marshal(map[string]any{"metadata": o.Object["metadata"], "spec": o.Object["spec"]})
	if err != nil {
		return entry{}, fmt.Errorf("encoding %s %s: %w", kind, o.GetName(), err)
	}
	var w wire
	if err := json.Unmarshal(raw, &w); err != nil {
		return entry{}, fmt.Errorf("reading %s %s: %w", kind, o.GetName(), err)
	}
	w.Kind = kind
	return entry{key: key{o.GetNamespace(), o.GetName()}, object: w.object()}, nil
}

func revisionEntry(o *unstructured.Unstructured) (entry, error) {
	data, _ := o.Object["data"].(map[string]any)
	raw, err := json.Marshal(content(data))
	if err != nil {
		return entry{}, fmt.Errorf("encoding ControllerRevision %s/%s: %w", o.GetNamespace(), o.GetName(), err)
	}
	return entry{
		key:     key{o.GetNamespace(), o.GetName()},
		of:      o.GetLabels()[instancetypeapi.ControllerRevisionObjectNameLabel],
		content: unique.Make(string(raw)),
	}, nil
}

// content returns the stored part of the object in a revision. It is equal for all revisions of one version of an object.
func content(data map[string]any) map[string]any {
	metadata, _ := data["metadata"].(map[string]any)
	kept := map[string]any{}
	for _, name := range []string{"name", "namespace"} {
		if metadata[name] != nil {
			kept[name] = metadata[name]
		}
	}
	return map[string]any{"kind": data["kind"], "metadata": kept, "spec": data["spec"]}
}

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error {
	e, err := s.entry(object)
	if err != nil {
		return err
	}
	s.index.change(s.kind, func(target *collection) { target.entries[e.key] = e })
	return nil
}

// Update implements cache.ReflectorStore.
func (s *store) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore. Only the name of the object counts.
func (s *store) Delete(object any) error {
	var at key
	switch o := object.(type) {
	case entry:
		at = o.key
	case metav1.Object:
		at = key{o.GetNamespace(), o.GetName()}
	default:
		return fmt.Errorf("instance type cache cannot delete a %T", object)
	}
	s.index.change(s.kind, func(target *collection) { delete(target.entries, at) })
	return nil
}

// Replace implements cache.ReflectorStore: the first list, and each one after a watch was
// lost for good.
func (s *store) Replace(objects []any, _ string) error {
	entries := make(map[key]entry, len(objects))
	for _, object := range objects {
		e, err := s.entry(object)
		if err != nil {
			return err
		}
		entries[e.key] = e
	}
	s.index.change(s.kind, func(target *collection) {
		target.entries, target.synced, target.missing = entries, true, false
	})
	return nil
}

// Resync implements cache.ReflectorStore. It does nothing.
func (s *store) Resync() error { return nil }
