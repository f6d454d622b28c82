package approvals

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/vmstencil/stencil/approval"
)

// index holds the cached objects. The stores write it, the cache reads it.
type index struct {
	mu         sync.RWMutex
	approvals  map[string]*approval.Approval
	namespaces map[string]labels
	// approvalsSynced and namespacesSynced report whether the first lists have arrived.
	approvalsSynced, namespacesSynced bool
	// sorted holds the approvals by name; nil after they have changed.
	sorted []*approval.Approval
	// memo holds the approvals that select a namespace. Entries are removed when they may have changed.
	memo map[string][]*approval.Approval
	// changed is closed, and replaced, whenever a namespace changes.
	changed chan struct{}
}

// labels are the labels and annotations of one namespace.
type labels struct {
	name                string
	labels, annotations map[string]string
}

func newIndex() *index {
	return &index{
		approvals:  map[string]*approval.Approval{},
		namespaces: map[string]labels{},
		memo:       map[string][]*approval.Approval{},
		changed:    make(chan struct{}),
	}
}

func (x *index) hasSynced() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.approvalsSynced && x.namespacesSynced
}

// approvalsFor returns the approvals that select a namespace, whether the namespace is in the cache, and a channel that is
// closed when a namespace changes.
func (x *index) approvalsFor(namespace string) (approvals []*approval.Approval, found bool, changed <-chan struct{}) {
	x.mu.RLock()
	approvals, cached := x.memo[namespace]
	x.mu.RUnlock()
	if cached {
		return approvals, true, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	approvals, found = x.find(namespace)
	return approvals, found, x.changed
}

// namespace returns the labels and annotations of a namespace, whether it is in the cache, and a channel that is closed when
// a namespace changes.
func (x *index) namespace(name string) (of labels, found bool, changed <-chan struct{}) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	of, found = x.namespaces[name]
	return of, found, x.changed
}

// find must be called with the lock held for writing.
func (x *index) find(namespace string) (approvals []*approval.Approval, found bool) {
	if approvals, cached := x.memo[namespace]; cached {
		return approvals, true
	}
	of, found := x.namespaces[namespace]
	if !found {
		return nil, false
	}
	for _, a := range x.byName() {
		if a.SelectsNamespace(namespace, of.labels) {
			approvals = append(approvals, a)
		}
	}
	x.memo[namespace] = approvals
	return approvals, true
}

// byName must be called with the lock held for writing.
func (x *index) byName() []*approval.Approval {
	if x.sorted == nil {
		x.sorted = slices.SortedFunc(maps.Values(x.approvals), func(a, b *approval.Approval) int { return cmp.Compare(a.Name(), b.Name()) })
	}
	return x.sorted
}

func (x *index) all() []*approval.Approval {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.byName()
}

func (x *index) approval(name string) *approval.Approval {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.approvals[name]
}

func (x *index) namespacesOf(a *approval.Approval) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var names []string
	for name, of := range x.namespaces {
		if a.SelectsNamespace(name, of.labels) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// size counts the cached approvals and the governed namespaces.
func (x *index) size() (valid, invalid, governed int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, a := range x.approvals {
		if a.Err() != nil {
			invalid++
		}
	}
	for namespace := range x.namespaces {
		if approvals, _ := x.find(namespace); len(approvals) > 0 {
			governed++
		}
	}
	return len(x.approvals) - invalid, invalid, governed
}

// changeApprovals runs a function that changes the approvals.
func (x *index) changeApprovals(change func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change()
	x.sorted = nil
	clear(x.memo)
}

// changeNamespace runs a function that changes one namespace.
func (x *index) changeNamespace(name string, change func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change()
	delete(x.memo, name)
	x.announce()
}

// changeNamespaces runs a function that may change any namespace.
func (x *index) changeNamespaces(change func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change()
	clear(x.memo)
	x.announce()
}

func (x *index) announce() {
	close(x.changed)
	x.changed = make(chan struct{})
}
