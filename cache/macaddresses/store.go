package macaddresses

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// store stores the objects of the VM reflector.
type store struct{ cache *Cache }

var _ cache.ReflectorStore = store{}

func read(object any) (types.NamespacedName, []string, error) {
	kept, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return types.NamespacedName{}, nil, fmt.Errorf("the cache of MAC addresses was given a %T", object)
	}
	var addresses []string
	for key, value := range kept.Annotations {
		if strings.HasPrefix(key, addressPrefix) {
			addresses = append(addresses, value)
		}
	}
	return types.NamespacedName{Namespace: kept.Namespace, Name: kept.Name}, addresses, nil
}

// Add implements cache.ReflectorStore.
func (s store) Add(object any) error {
	vm, addresses, err := read(object)
	if err == nil {
		s.cache.index.set(vm, addresses)
	}
	return err
}

// Update implements cache.ReflectorStore.
func (s store) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s store) Delete(object any) error {
	vm, _, err := read(object)
	if err == nil {
		s.cache.index.set(vm, nil)
	}
	return err
}

// Replace implements cache.ReflectorStore: the first list, and each one after a watch was
// lost for good.
func (s store) Replace(objects []any, _ string) error {
	all := map[types.NamespacedName][]string{}
	for _, object := range objects {
		vm, addresses, err := read(object)
		if err != nil {
			return err
		}
		all[vm] = addresses
	}
	s.cache.index.replace(all)
	s.cache.missing.Store(false)
	s.cache.listed.Store(true)
	return nil
}

// Resync implements cache.ReflectorStore.
func (store) Resync() error { return nil }
