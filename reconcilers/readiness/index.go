package readiness

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
)

// index maps objects to the templates that depend on them.
type index struct {
	mutex      sync.Mutex
	dependents map[sources.Key]map[types.NamespacedName]struct{}
	referenced map[types.NamespacedName]map[sources.Key]bool
}

func newIndex() *index {
	return &index{
		dependents: map[sources.Key]map[types.NamespacedName]struct{}{},
		referenced: map[types.NamespacedName]map[sources.Key]bool{},
	}
}

// set stores the objects that a template has read; none removes the template. It returns whether there are objects that the index did not
// contain for the template.
func (x *index) set(template types.NamespacedName, seen map[sources.Key]bool) (more bool) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	for key := range x.referenced[template] {
		if !seen[key] {
			delete(x.dependents[key], template)
			if len(x.dependents[key]) == 0 {
				delete(x.dependents, key)
			}
		}
	}
	if len(seen) == 0 {
		delete(x.referenced, template)
		return false
	}
	for key := range seen {
		more = more || !x.referenced[template][key]
		if x.dependents[key] == nil {
			x.dependents[key] = map[types.NamespacedName]struct{}{}
		}
		x.dependents[key][template] = struct{}{}
	}
	x.referenced[template] = seen
	return more
}

// of returns the templates that depend on an object, or on any object of the kind if the key has no name.
func (x *index) of(key sources.Key) []types.NamespacedName {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if key.Name != "" {
		return names(x.dependents[key])
	}
	found := map[types.NamespacedName]struct{}{}
	for one, templates := range x.dependents {
		if one.Kind != key.Kind {
			continue
		}
		for template := range templates {
			found[template] = struct{}{}
		}
	}
	return names(found)
}

func names(set map[types.NamespacedName]struct{}) []types.NamespacedName {
	found := make([]types.NamespacedName, 0, len(set))
	for name := range set {
		found = append(found, name)
	}
	return found
}
