package instancetypes

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"unique"

	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// kindRevision is the kind of ControllerRevisions, in addition to the kinds of package sizing.
const kindRevision = "ControllerRevision"

// kinds are the watched kinds.
var kinds = []string{
	sizing.KindInstancetype, sizing.KindClusterInstancetype,
	sizing.KindPreference, sizing.KindClusterPreference,
	kindRevision,
}

// key identifies an object of some kind; namespace is empty for cluster-scoped kinds.
type key struct{ namespace, name string }

// entry is one object: an instance type or a preference, or a revision of one.
type entry struct {
	key key
	// object is the input of policies; nil for a revision.
	object map[string]any
	// of is the name of the object that a revision was made of. content is that object, as JSON.
	of      string
	content unique.Handle[string]
}

// collection holds the objects of one kind.
type collection struct {
	entries map[key]entry
	// synced is true once the first list has arrived, missing while the kind is not served.
	synced, missing bool
}

// index holds the cached objects. The stores write it, the cache reads it.
type index struct {
	mu          sync.RWMutex
	collections map[string]*collection
	// changed is closed, and replaced, on every change; altered, on every change that does not concern a revision.
	changed, altered chan struct{}
}

func newIndex() *index {
	x := &index{collections: map[string]*collection{}, changed: make(chan struct{}), altered: make(chan struct{})}
	for _, kind := range kinds {
		x.collections[kind] = &collection{entries: map[key]entry{}}
	}
	return x
}

func (x *index) hasSynced() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, s := range x.collections {
		if !s.synced && !s.missing {
			return false
		}
	}
	return true
}

func (x *index) isMissing(kind string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.collections[kind].missing
}

func (x *index) alteration() <-chan struct{} {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.altered
}

// change runs a function that changes the collection of one kind.
func (x *index) change(kind string, change func(*collection)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change(x.collections[kind])
	close(x.changed)
	x.changed = make(chan struct{})
	if kind != kindRevision {
		close(x.altered)
		x.altered = make(chan struct{})
	}
}

// size counts the objects of a kind.
func (x *index) size(kind string) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.collections[kind].entries)
}

// resolve returns the object that a reference refers to, and a channel that is closed on the next change.
func (x *index) resolve(r sizing.Reference) (object map[string]any, changed <-chan struct{}, err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	object, err = x.find(r)
	return object, x.changed, err
}

// find must be called with the lock held.
func (x *index) find(r sizing.Reference) (map[string]any, error) {
	if r.Revision != "" {
		revision, found := x.collections[kindRevision].entries[key{r.Namespace, r.Revision}]
		switch {
		case !found && !x.collections[kindRevision].synced:
			return nil, errUnsynced
		case !found && r.Loose:
			return nil, fmt.Errorf("ControllerRevision %s, which its status names: %w", r.Revision, errRevision)
		case !found:
			return nil, errRevision
		case !r.Loose || revision.of == r.Name:
			return x.revised(r, revision)
		}
	}
	target := x.collections[r.Kind]
	at := key{r.Namespace, r.Name}
	if r.Kind == sizing.KindClusterInstancetype || r.Kind == sizing.KindClusterPreference {
		at.namespace = ""
	}
	live, found := target.entries[at]
	switch {
	case found:
		return live.object, nil
	case !target.synced && !target.missing:
		return nil, errUnsynced
	default:
		return nil, errMissing
	}
}

// revised returns the object that a revision holds. KubeVirt does not store labels and annotations in it. If the live object
// has the same spec, revised returns the live object, with its labels and annotations.
func (x *index) revised(r sizing.Reference, revision entry) (map[string]any, error) {
	var stored wire
	if err := json.Unmarshal([]byte(revision.content.Value()), &stored); err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	if !sameFamily(r.Kind, stored.Kind) {
		return nil, fmt.Errorf("it holds a %q and no %s", stored.Kind, familyOf(r.Kind))
	}
	if stored.Spec == nil {
		return nil, fmt.Errorf("it holds a %s without a spec", stored.Kind)
	}
	at := key{stored.Metadata.Namespace, stored.Metadata.Name}
	if live, found := x.collections[stored.Kind].entries[at]; found && reflect.DeepEqual(live.object["spec"], stored.object()["spec"]) {
		return live.object, nil
	}
	stored.Metadata.Labels, stored.Metadata.Annotations = nil, nil
	return stored.object(), nil
}

func familyOf(kind string) string {
	if kind == sizing.KindInstancetype || kind == sizing.KindClusterInstancetype {
		return "instance type"
	}
	return "preference"
}

func sameFamily(want, got string) bool {
	switch got {
	case sizing.KindInstancetype, sizing.KindClusterInstancetype, sizing.KindPreference, sizing.KindClusterPreference:
		return familyOf(want) == familyOf(got)
	default:
		return false
	}
}
