package observed

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// changes are the namespaces in which something changed. It is safe for concurrent use.
type changes struct {
	mutex      sync.Mutex
	namespaces map[string]bool
	// changed is closed, and replaced, when a namespace is added.
	changed chan struct{}
}

func newChanges() *changes {
	return &changes{namespaces: map[string]bool{}, changed: make(chan struct{})}
}

func (c *changes) add(namespace string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.namespaces[namespace] = true
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *changes) next() <-chan struct{} {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.changed
}

// take returns the namespaces, sorted, and removes them.
func (c *changes) take() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	taken := slices.Sorted(maps.Keys(c.namespaces))
	clear(c.namespaces)
	return taken
}

// store holds the objects of one kind. It is safe for concurrent use.
type store struct {
	changes *changes

	mutex sync.RWMutex
	// objects are by namespace and name.
	objects map[string]map[string]Object
	// synced is true after a list was received, or if the kind is not served.
	synced bool
}

var _ cache.ReflectorStore = (*store)(nil)

func newStore(c *changes) *store { return &store{changes: c, objects: map[string]map[string]Object{}} }

func read(object any) (namespace string, one Object, err error) {
	metadata, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return "", Object{}, fmt.Errorf("what is observed was given as a %T", object)
	}
	one.Name = metadata.Name
	if content := metadata.Annotations[contentAnnotation]; content != "" {
		err = json.Unmarshal([]byte(content), &one)
	}
	return metadata.Namespace, one, err
}

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error {
	namespace, one, err := read(object)
	if err != nil {
		return err
	}
	s.mutex.Lock()
	before, exists := s.objects[namespace][one.Name]
	if s.objects[namespace] == nil {
		s.objects[namespace] = map[string]Object{}
	}
	s.objects[namespace][one.Name] = one
	s.mutex.Unlock()
	if !exists || before.Digest != one.Digest {
		s.changes.add(namespace)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (s *store) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s *store) Delete(object any) error {
	namespace, one, err := read(object)
	if err != nil {
		return err
	}
	s.mutex.Lock()
	delete(s.objects[namespace], one.Name)
	if len(s.objects[namespace]) == 0 {
		delete(s.objects, namespace)
	}
	s.mutex.Unlock()
	s.changes.add(namespace)
	return nil
}

// Replace implements cache.ReflectorStore. It receives the first list, and each list after a lost watch.
func (s *store) Replace(objects []any, _ string) error {
	all := map[string]map[string]Object{}
	for _, object := range objects {
		namespace, one, err := read(object)
		if err != nil {
			return err
		}
		if all[namespace] == nil {
			all[namespace] = map[string]Object{}
		}
		all[namespace][one.Name] = one
	}
	s.replace(all)
	return nil
}

func (s *store) replace(all map[string]map[string]Object) {
	s.mutex.Lock()
	before := s.objects
	s.objects, s.synced = all, true
	s.mutex.Unlock()
	equal := func(a, b Object) bool { return a.Digest == b.Digest }
	for namespace := range before {
		if all[namespace] == nil {
			s.changes.add(namespace)
		}
	}
	for namespace, now := range all {
		if !maps.EqualFunc(before[namespace], now, equal) {
			s.changes.add(namespace)
		}
	}
}

// failed handles an error of a list or watch. A kind that is not served has no objects.
func (s *store) failed(err error) {
	if apierrors.IsNotFound(err) {
		s.replace(map[string]map[string]Object{})
	}
}

// Resync implements cache.ReflectorStore.
func (*store) Resync() error { return nil }

// in returns the objects of a namespace, by name.
func (s *store) in(namespace string) []Object {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	var list []Object
	for _, name := range slices.Sorted(maps.Keys(s.objects[namespace])) {
		list = append(list, s.objects[namespace][name])
	}
	return list
}

func (s *store) isSynced() bool {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	return s.synced
}
