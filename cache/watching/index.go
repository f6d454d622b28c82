package watching

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Index holds the objects of one kind in the form T, by namespace and name. A reflector of objects of type O fills it. All
// methods are safe for concurrent use.
type Index[O metav1.Object, T any] struct {
	options Options[O, T]

	mutex sync.RWMutex
	// objects are by namespace, which is empty for cluster-scoped objects, and name.
	objects map[string]map[string]T
	synced  bool
	// problem is why there are no objects: the kind is not served, or must not be read.
	problem error
}

// Options are the options of an Index.
type Options[O metav1.Object, T any] struct {
	// Kind is the name of the kind, for errors.
	Kind string
	// Convert returns the stored form of an object. found is false if no object of that name is stored. It is called without
	// the lock, for lists already while they stream in, so that the objects as received are not in memory until their end.
	Convert func(object O, stored T, found bool) (T, error)
	// Equal reports whether a write is no change. Optional; by default each write is a change.
	Equal func(before, after T) bool
	// Changed is called with the lock held: it must return quickly and must not call the index. Optional.
	Changed func(Update[T])
}

// Update is what a reflector has written.
type Update[T any] struct {
	// Changes are in no order.
	Changes []Change[T]
	// Listed is true for a list, First for the first one and the first one after Fail, and Failed for Fail.
	Listed, First, Failed bool
}

// Change is the change of one object.
type Change[T any] struct {
	types.NamespacedName
	// Before and After are the stored forms. They are zero if the object did not exist, or does not.
	Before, After   T
	Existed, Exists bool
}

// NewIndex returns an empty Index that is not synced.
func NewIndex[O metav1.Object, T any](options Options[O, T]) *Index[O, T] {
	if options.Equal == nil {
		options.Equal = func(T, T) bool { return false }
	}
	if options.Changed == nil {
		options.Changed = func(Update[T]) {}
	}
	return &Index[O, T]{options: options, objects: map[string]map[string]T{}}
}

// Get returns the object of that namespace and name, and whether it exists.
func (x *Index[O, T]) Get(namespace, name string) (object T, found bool) {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	object, found = x.objects[namespace][name]
	return object, found
}

// In returns the objects of a namespace, sorted by name.
func (x *Index[O, T]) In(namespace string) []T {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	objects := make([]T, 0, len(x.objects[namespace]))
	for _, name := range slices.Sorted(maps.Keys(x.objects[namespace])) {
		objects = append(objects, x.objects[namespace][name])
	}
	return objects
}

// List returns all objects, in no order.
func (x *Index[O, T]) List() []T {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	var objects []T
	for _, in := range x.objects {
		objects = slices.AppendSeq(objects, maps.Values(in))
	}
	return objects
}

// Range calls a function for each object, in no order, until it returns false. The function is called with the lock held.
func (x *Index[O, T]) Range(each func(name types.NamespacedName, object T) bool) {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	for namespace, in := range x.objects {
		for name, object := range in {
			if !each(types.NamespacedName{Namespace: namespace, Name: name}, object) {
				return
			}
		}
	}
}

// RangeIn calls a function for each object of a namespace, in no order. The function is called with the lock held.
func (x *Index[O, T]) RangeIn(namespace string, each func(name string, object T)) {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	for name, object := range x.objects[namespace] {
		each(name, object)
	}
}

// Len returns the number of objects.
func (x *Index[O, T]) Len() int {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	count := 0
	for _, in := range x.objects {
		count += len(in)
	}
	return count
}

// Listed reports whether the last list was received, and no Fail since.
func (x *Index[O, T]) Listed() bool {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	return x.synced
}

// Synced reports whether the first list was received, or cannot be: see Fail.
func (x *Index[O, T]) Synced() bool {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	return x.synced || x.problem != nil
}

// Problem returns the error of the last Fail, nil after a list.
func (x *Index[O, T]) Problem() error {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	return x.problem
}

// Fail removes all objects and records why there are none, until the next list. It is for a kind that the API server does not
// serve or must not be read; after other errors the stored objects remain valid. It returns false if Fail was called before.
func (x *Index[O, T]) Fail(problem error) bool {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.problem != nil {
		x.problem = problem
		return false
	}
	before := x.objects
	x.objects, x.synced, x.problem = map[string]map[string]T{}, false, problem
	x.options.Changed(Update[T]{Changes: x.compare(before), Failed: true})
	return true
}

// FailIfNotServed calls Fail if the error means that the API server does not serve the kind. It ignores other errors: the stored
// objects remain valid. It fits Late.Failed.
func (x *Index[O, T]) FailIfNotServed(err error) {
	if apierrors.IsNotFound(err) {
		x.Fail(err)
	}
}

// converted is an object in its stored form, on its way through a reflector.
type converted[T any] struct {
	name  types.NamespacedName
	value T
}

// Transformer implements cache.TransformingStore.
func (x *Index[O, T]) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return x.convert(object) }
}

func (x *Index[O, T]) convert(object any) (converted[T], error) {
	if already, is := object.(converted[T]); is {
		return already, nil
	}
	received, is := object.(O)
	if !is {
		return converted[T]{}, fmt.Errorf("the watch of %s received a %T", x.options.Kind, object)
	}
	result := converted[T]{name: types.NamespacedName{Namespace: received.GetNamespace(), Name: received.GetName()}}
	stored, found := x.Get(result.name.Namespace, result.name.Name)
	var err error
	result.value, err = x.options.Convert(received, stored, found)
	return result, err
}

// Add implements cache.ReflectorStore.
func (x *Index[O, T]) Add(object any) error {
	added, err := x.convert(object)
	if err != nil {
		return err
	}
	x.mutex.Lock()
	defer x.mutex.Unlock()
	before, existed := x.objects[added.name.Namespace][added.name.Name]
	put(x.objects, added)
	if !existed || !x.options.Equal(before, added.value) {
		x.options.Changed(Update[T]{Changes: []Change[T]{
			{NamespacedName: added.name, Before: before, Existed: existed, After: added.value, Exists: true},
		}})
	}
	return nil
}

func put[T any](objects map[string]map[string]T, added converted[T]) {
	in := objects[added.name.Namespace]
	if in == nil {
		in = map[string]T{}
		objects[added.name.Namespace] = in
	}
	in[added.name.Name] = added.value
}

// Update implements cache.ReflectorStore.
func (x *Index[O, T]) Update(object any) error { return x.Add(object) }

// Delete implements cache.ReflectorStore. Only the name of the object counts.
func (x *Index[O, T]) Delete(object any) error {
	var name types.NamespacedName
	if already, is := object.(converted[T]); is {
		name = already.name
	} else {
		key, err := cache.DeletionHandlingObjectToName(object)
		if err != nil {
			return fmt.Errorf("reading the name of a deleted object of %s: %w", x.options.Kind, err)
		}
		name = types.NamespacedName(key)
	}
	x.mutex.Lock()
	defer x.mutex.Unlock()
	in := x.objects[name.Namespace]
	before, existed := in[name.Name]
	delete(in, name.Name)
	if len(in) == 0 {
		delete(x.objects, name.Namespace)
	}
	if existed {
		x.options.Changed(Update[T]{Changes: []Change[T]{{NamespacedName: name, Before: before, Existed: true}}})
	}
	return nil
}

// Replace implements cache.ReflectorStore. It receives the first list, and each list after a watch was lost.
func (x *Index[O, T]) Replace(list []any, _ string) error {
	objects := map[string]map[string]T{}
	for _, object := range list {
		added, err := x.convert(object)
		if err != nil {
			return err
		}
		put(objects, added)
	}
	x.mutex.Lock()
	defer x.mutex.Unlock()
	before, first := x.objects, !x.synced
	x.objects, x.synced, x.problem = objects, true, nil
	x.options.Changed(Update[T]{Changes: x.compare(before), Listed: true, First: first})
	return nil
}

// compare returns the changes since an earlier state. It must be called with the lock held.
func (x *Index[O, T]) compare(earlier map[string]map[string]T) []Change[T] {
	var changes []Change[T]
	for namespace, in := range x.objects {
		for name, after := range in {
			before, existed := earlier[namespace][name]
			if !existed || !x.options.Equal(before, after) {
				at := types.NamespacedName{Namespace: namespace, Name: name}
				changes = append(changes, Change[T]{NamespacedName: at, Before: before, Existed: existed, After: after, Exists: true})
			}
		}
	}
	for namespace, in := range earlier {
		for name, before := range in {
			if _, exists := x.objects[namespace][name]; !exists {
				at := types.NamespacedName{Namespace: namespace, Name: name}
				changes = append(changes, Change[T]{NamespacedName: at, Before: before, Existed: true})
			}
		}
	}
	return changes
}

// Resync implements cache.ReflectorStore. It does nothing.
func (x *Index[O, T]) Resync() error { return nil }
