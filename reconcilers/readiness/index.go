package readiness

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/internal/intern"
	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
)

// index maps objects to the templates that depend on them. It holds lists instead of sets: nearly all have one to three items, for which
// a map takes ten times as much memory.
type index struct {
	mutex      sync.Mutex
	dependents map[sources.Key][]types.NamespacedName
	// referenced has all templates that were read, also those that depend on nothing.
	referenced map[types.NamespacedName][]sources.Key
	texts      intern.Texts
	// changed is called for each object of which a template begins or ends to depend. It is optional, and must not call the index.
	changed func(sources.Key)
}

func newIndex() *index {
	return &index{dependents: map[sources.Key][]types.NamespacedName{}, referenced: map[types.NamespacedName][]sources.Key{}}
}

// set stores the objects that a template has read, each once; nil removes the template. It returns whether there are objects that the
// index did not contain for the template.
func (x *index) set(template types.NamespacedName, seen []sources.Key) (more bool) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	before := x.referenced[template]
	for _, key := range before {
		if !slices.Contains(seen, key) {
			x.remove(key, template)
			x.notify(key)
		}
	}
	if seen == nil {
		delete(x.referenced, template)
		return false
	}
	kept := make([]sources.Key, len(seen))
	for i, key := range seen {
		kept[i] = x.shared(key)
		if !slices.Contains(before, key) {
			more = true
			x.dependents[kept[i]] = append(x.dependents[kept[i]], template)
			x.notify(key)
		}
	}
	x.referenced[template] = kept
	return more
}

// shared returns an equal key whose texts are stored once if many templates have them.
func (x *index) shared(key sources.Key) sources.Key {
	return sources.Key{Kind: sources.Kind(x.texts.Of(string(key.Kind))), Namespace: x.texts.Of(key.Namespace), Name: x.texts.Of(key.Name)}
}

func (x *index) remove(key sources.Key, template types.NamespacedName) {
	templates := x.dependents[key]
	if len(templates) == 1 {
		delete(x.dependents, key)
		return
	}
	i, last := slices.Index(templates, template), len(templates)-1
	templates[i], templates[last] = templates[last], types.NamespacedName{}
	x.dependents[key] = templates[:last]
}

// of returns the templates that depend on an object, or on any object of the kind if the key has no name.
func (x *index) of(key sources.Key) []types.NamespacedName {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if key.Name != "" {
		return slices.Clone(x.dependents[key])
	}
	var found []types.NamespacedName
	for template, keys := range x.referenced {
		if slices.ContainsFunc(keys, func(one sources.Key) bool { return one.Kind == key.Kind }) {
			found = append(found, template)
		}
	}
	return found
}

func (x *index) notify(key sources.Key) {
	if x.changed != nil {
		x.changed(key)
	}
}

// size returns the number of templates that were read.
func (x *index) size() int {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	return len(x.referenced)
}
