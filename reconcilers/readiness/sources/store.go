package sources

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// entry is an object to be stored, with the metadata that a reflector requires.
type entry struct {
	metav1.ObjectMeta
	Object
}

// store holds the objects of one kind.
type store struct {
	kind    Kind
	reduce  func(*unstructured.Unstructured) Object
	changed func(Key)

	mutex   sync.RWMutex
	objects map[types.NamespacedName]Object
	synced  bool
	// problem is why it is empty: the kind is not served, or must not be read.
	problem error
}

var (
	_ cache.ReflectorStore    = &store{}
	_ cache.TransformingStore = &store{}
)

func newStore(kind Kind, reduce func(*unstructured.Unstructured) Object, changed func(Key)) *store {
	return &store{kind: kind, reduce: reduce, changed: changed, objects: map[types.NamespacedName]Object{}}
}

// get returns an object, whether it exists, and an error if that is unknown.
func (s *store) get(name types.NamespacedName) (object Object, found bool, unknown error) {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	if s.problem != nil {
		return Object{}, false, s.problem
	}
	if !s.synced {
		return Object{}, false, errNotYet
	}
	object, found = s.objects[name]
	return object, found, nil
}

// isSynced reports whether the first list has arrived, or cannot arrive.
func (s *store) isSynced() bool {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	return s.synced || s.problem != nil
}

// Transformer implements cache.TransformingStore: objects are reduced while a list streams in.
func (s *store) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return s.entryOf(object) }
}

func (s *store) entryOf(object any) (*entry, error) {
	if already, is := object.(*entry); is {
		return already, nil
	}
	meta, is := object.(metav1.Object)
	if !is {
		return nil, fmt.Errorf("the watch of %ss was given a %T", s.kind, object)
	}
	made := &entry{ObjectMeta: metav1.ObjectMeta{Namespace: meta.GetNamespace(), Name: meta.GetName(), ResourceVersion: meta.GetResourceVersion()}}
	if whole, is := object.(*unstructured.Unstructured); is && s.reduce != nil {
		made.Object = s.reduce(whole)
	} else {
		made.Ready = true
	}
	made.Deleting = meta.GetDeletionTimestamp() != nil
	return made, nil
}

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error {
	added, err := s.entryOf(object)
	if err != nil {
		return err
	}
	name := types.NamespacedName{Namespace: added.Namespace, Name: added.Name}
	s.mutex.Lock()
	before, was := s.objects[name]
	s.objects[name] = added.Object
	s.mutex.Unlock()
	if !was || before != added.Object {
		s.notify(name)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (s *store) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s *store) Delete(object any) error {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return fmt.Errorf("reading the name of a deleted %s: %w", s.kind, err)
	}
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return fmt.Errorf("reading the name of a deleted %s: %w", s.kind, err)
	}
	deleted := types.NamespacedName{Namespace: namespace, Name: name}
	s.mutex.Lock()
	delete(s.objects, deleted)
	s.mutex.Unlock()
	s.notify(deleted)
	return nil
}

// Replace implements cache.ReflectorStore: the first list, and each one after a watch was lost for good.
func (s *store) Replace(objects []any, _ string) error {
	replacement := make(map[types.NamespacedName]Object, len(objects))
	for _, object := range objects {
		one, err := s.entryOf(object)
		if err != nil {
			return err
		}
		replacement[types.NamespacedName{Namespace: one.Namespace, Name: one.Name}] = one.Object
	}
	s.mutex.Lock()
	before, first := s.objects, !s.synced || s.problem != nil
	s.objects, s.synced, s.problem = replacement, true, nil
	s.mutex.Unlock()
	if first {
		// Only now are missing objects distinguished from objects that were not read.
		s.changed(Key{Kind: s.kind})
		return nil
	}
	for name, object := range replacement {
		if was, is := before[name]; !is || was != object {
			s.notify(name)
		}
	}
	for name := range before {
		if _, is := replacement[name]; !is {
			s.notify(name)
		}
	}
	return nil
}

// Resync implements cache.ReflectorStore; nothing has to be processed without a change.
func (s *store) Resync() error { return nil }

func (s *store) notify(name types.NamespacedName) {
	s.changed(Key{Kind: s.kind, Namespace: name.Namespace, Name: name.Name})
}

// failed stores why objects cannot be listed or watched. After a temporary failure the stored objects remain valid.
func (s *store) failed(err error) {
	var problem error
	switch {
	case apierrors.IsNotFound(err):
		problem = &NotServedError{s.kind}
	case apierrors.IsForbidden(err):
		problem = fmt.Errorf("the manager may not list objects of the kind %s", s.kind)
	default:
		return
	}
	s.mutex.Lock()
	failedBefore := s.problem != nil
	s.problem = problem
	s.mutex.Unlock()
	if !failedBefore {
		s.changed(Key{Kind: s.kind})
	}
}
