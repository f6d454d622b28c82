package observed

import (
	"maps"
	"slices"
	"sync"

	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/await"
)

// changes are the namespaces in which something changed. It is safe for concurrent use.
type changes struct {
	mutex      sync.Mutex
	namespaces map[string]bool
	// changed is sent when a namespace is added.
	changed await.Signal
}

func newChanges() *changes { return &changes{namespaces: map[string]bool{}} }

func (c *changes) add(namespace string) {
	c.mutex.Lock()
	c.namespaces[namespace] = true
	c.mutex.Unlock()
	c.changed.Send()
}

// take returns the namespaces, sorted, and removes them.
func (c *changes) take() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	taken := slices.Sorted(maps.Keys(c.namespaces))
	clear(c.namespaces)
	return taken
}

type index = watching.Index[*watching.Object[Object], Object]

// newIndex returns the index of a kind.
func newIndex(kind string, c *changes, also ...func(watching.Update[Object])) *index {
	return watching.NewIndex(watching.Options[*watching.Object[Object], Object]{
		Kind:    kind,
		Convert: func(object *watching.Object[Object], _ Object, _ bool) (Object, error) { return object.Value, nil },
		Equal:   func(before, after Object) bool { return before.Digest == after.Digest },
		Changed: func(update watching.Update[Object]) {
			for _, each := range update.Changes {
				c.add(each.Namespace)
			}
			for _, one := range also {
				one(update)
			}
		},
	})
}
