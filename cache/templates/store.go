package templates

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// store holds the templates. The reflector writes it, the cache reads it.
type store struct {
	mu        sync.RWMutex
	templates map[types.NamespacedName]*Template
	synced    bool
	// changed is closed, and replaced, whenever something was added.
	changed chan struct{}
	// altered is closed, and replaced, whenever a template is added or deleted, or its content, labels or annotations
	// change.
	altered chan struct{}
	// listeners are called with every template that is added, written or deleted.
	listeners []Listener
}

var (
	_ cache.ReflectorStore    = &store{}
	_ cache.TransformingStore = &store{}
)

func newStore() *store {
	return &store{
		templates: map[types.NamespacedName]*Template{},
		changed:   make(chan struct{}),
		altered:   make(chan struct{}),
	}
}

// get returns the template and a channel that is closed at the next addition.
func (s *store) get(key types.NamespacedName) (*Template, <-chan struct{}) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.templates[key], s.changed
}

func (s *store) list() []*Template {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.templates))
}

func (s *store) size() (valid, invalid int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, t := range s.templates {
		if t.invalid != nil {
			invalid++
		}
	}
	return len(s.templates) - invalid, invalid
}

func (s *store) hasSynced() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.synced
}

// Transformer compiles objects while the first list streams in, before the
// reflector gathers them, so that their wire form is not in memory until its end.
func (s *store) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return s.toTemplate(object) }
}

func (s *store) toTemplate(object any) (*Template, error) {
	switch o := object.(type) {
	case *Template:
		return o, nil
	case *v1beta1.VirtualMachineTemplate:
		known, _ := s.get(types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
		if known != nil && known.UID == o.UID && known.Generation == o.Generation {
			return known.withMetadataOf(o), nil
		}
		return Compile(o), nil
	default:
		return nil, fmt.Errorf("template cache was given a %T", object)
	}
}

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error {
	t, err := s.toTemplate(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := types.NamespacedName{Namespace: t.Namespace, Name: t.Name}
	if before := s.templates[key]; before == nil || before.differs(t) {
		s.alter()
	}
	s.templates[key] = t
	s.announce()
	s.notify(key, t)
	return nil
}

// Update implements cache.ReflectorStore.
func (s *store) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore. Only the name of the object counts,
// so it need not be compiled.
func (s *store) Delete(object any) error {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return fmt.Errorf("reading the name of a deleted template: %w", err)
	}
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return fmt.Errorf("reading the name of a deleted template: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	deleted := types.NamespacedName{Namespace: namespace, Name: name}
	delete(s.templates, deleted)
	s.alter()
	s.notify(deleted, nil)
	return nil
}

// Replace implements cache.ReflectorStore: the first list, and each one after a
// watch was lost for good.
func (s *store) Replace(objects []any, _ string) error {
	templates := make(map[types.NamespacedName]*Template, len(objects))
	for _, object := range objects {
		t, err := s.toTemplate(object)
		if err != nil {
			return err
		}
		templates[types.NamespacedName{Namespace: t.Namespace, Name: t.Name}] = t
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.templates
	s.templates = templates
	s.synced = true
	s.announce()
	s.alter()
	for key, t := range templates {
		s.notify(key, t)
	}
	for key := range before {
		if templates[key] == nil {
			s.notify(key, nil)
		}
	}
	return nil
}

// Resync implements cache.ReflectorStore. It does nothing.
func (s *store) Resync() error { return nil }

func (s *store) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *store) alter() {
	close(s.altered)
	s.altered = make(chan struct{})
}

// alteration returns a channel that is closed at the next change of content, labels or annotations.
func (s *store) alteration() <-chan struct{} {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.altered
}

// listen calls a function for every cached template, and for every later change.
func (s *store) listen(listener Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, listener)
	for key, t := range s.templates {
		listener(key, t)
	}
}

func (s *store) notify(key types.NamespacedName, t *Template) {
	for _, listener := range s.listeners {
		listener(key, t)
	}
}
