package approvals

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// namespaceStore stores the objects of the namespace reflector.
type namespaceStore struct{ index *index }

var (
	_ cache.ReflectorStore    = &namespaceStore{}
	_ cache.TransformingStore = &namespaceStore{}
)

func newNamespaceStore(x *index) *namespaceStore { return &namespaceStore{index: x} }

// Transformer drops everything but labels and annotations while the first list
// streams in.
func (s *namespaceStore) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return labelsOf(object) }
}

func labelsOf(object any) (labels, error) {
	switch o := object.(type) {
	case labels:
		return o, nil
	case *metav1.PartialObjectMetadata:
		return labels{name: o.Name, labels: o.Labels, annotations: annotationsOf(o)}, nil
	default:
		return labels{}, fmt.Errorf("approval cache was given a %T for a namespace", object)
	}
}

// annotationsOf returns the annotations without kubectl's copy of the manifest.
func annotationsOf(o *metav1.PartialObjectMetadata) map[string]string {
	if _, found := o.Annotations[corev1.LastAppliedConfigAnnotation]; !found {
		return o.Annotations
	}
	kept := maps.Clone(o.Annotations)
	delete(kept, corev1.LastAppliedConfigAnnotation)
	return kept
}

// Add implements cache.ReflectorStore.
func (s *namespaceStore) Add(object any) error {
	of, err := labelsOf(object)
	if err != nil {
		return err
	}
	s.index.mu.RLock()
	current, found := s.index.namespaces[of.name]
	s.index.mu.RUnlock()
	if !found || !maps.Equal(current.labels, of.labels) || !maps.Equal(current.annotations, of.annotations) {
		s.index.changeNamespace(of.name, func() { s.index.namespaces[of.name] = of })
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (s *namespaceStore) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore. Only the name of the object counts.
func (s *namespaceStore) Delete(object any) error {
	name, err := nameOf(object)
	if err != nil {
		return err
	}
	s.index.changeNamespace(name, func() { delete(s.index.namespaces, name) })
	return nil
}

// Replace implements cache.ReflectorStore: the first list, and each one after a
// watch was lost for good.
func (s *namespaceStore) Replace(objects []any, _ string) error {
	namespaces := make(map[string]labels, len(objects))
	for _, object := range objects {
		of, err := labelsOf(object)
		if err != nil {
			return err
		}
		namespaces[of.name] = of
	}
	s.index.changeNamespaces(func() {
		s.index.namespaces = namespaces
		s.index.namespacesSynced = true
	})
	return nil
}

// Resync implements cache.ReflectorStore. It does nothing.
func (s *namespaceStore) Resync() error { return nil }
