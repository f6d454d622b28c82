package approvals

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/await"
)

// index holds the compiled approvals, the namespaces, and which approvals select which namespace.
type index struct {
	approvals  *watching.Index[*v1alpha1.TemplateApproval, *approval.Approval]
	namespaces *watching.Index[*metav1.PartialObjectMetadata, labels]
	// changed is sent when a namespace changes.
	changed await.Signal

	mutex sync.RWMutex
	// sorted holds the approvals by name; nil after they have changed.
	sorted []*approval.Approval
	// memo holds the approvals that select a namespace. Entries are removed when they may have changed.
	memo map[string][]*approval.Approval
	// version is incremented when sorted or an entry of memo is removed: what was computed before must not be stored after.
	version int
}

// labels are the labels and annotations of one namespace.
type labels struct{ labels, annotations map[string]string }

func newIndex(log logr.Logger, excludedNamespaces []string) *index {
	x := &index{memo: map[string][]*approval.Approval{}}
	excluded := approval.Excluding(excludedNamespaces...)
	x.approvals = watching.NewIndex(watching.Options[*v1alpha1.TemplateApproval, *approval.Approval]{
		Kind: "TemplateApprovals",
		// Every audit changes the status of an approval; it is compiled again only if its generation differs.
		Convert: func(object *v1alpha1.TemplateApproval, stored *approval.Approval, found bool) (*approval.Approval, error) {
			if found && stored.UID() == object.UID && stored.Generation() == object.Generation {
				return stored, nil
			}
			compiled, err := approval.Compile(object, excluded)
			if err != nil {
				log.Error(err, "TemplateApproval does not compile; it approves nothing in the namespaces that it selects", "approval", object.Name)
				return approval.Closed(object, err, excluded), nil
			}
			return compiled, nil
		},
		Equal: func(before, after *approval.Approval) bool { return before == after },
		Changed: func(watching.Update[*approval.Approval]) {
			x.mutex.Lock()
			defer x.mutex.Unlock()
			x.sorted = nil
			x.version++
			clear(x.memo)
		},
	})
	x.namespaces = watching.NewIndex(watching.Options[*metav1.PartialObjectMetadata, labels]{
		Kind: "Namespaces",
		Convert: func(object *metav1.PartialObjectMetadata, _ labels, _ bool) (labels, error) {
			return labels{object.Labels, watching.Annotations(object)}, nil
		},
		Equal: func(before, after labels) bool {
			return maps.Equal(before.labels, after.labels) && maps.Equal(before.annotations, after.annotations)
		},
		Changed: func(update watching.Update[labels]) {
			x.mutex.Lock()
			x.version++
			for _, each := range update.Changes {
				delete(x.memo, each.Name)
			}
			x.mutex.Unlock()
			x.changed.Send()
		},
	})
	return x
}

func (x *index) hasSynced() bool { return x.approvals.Synced() && x.namespaces.Synced() }

// approvalsFor returns the approvals that select a namespace, and whether the namespace is in the cache.
func (x *index) approvalsFor(namespace string) (approvals []*approval.Approval, found bool) {
	x.mutex.RLock()
	approvals, found = x.memo[namespace]
	version := x.version
	x.mutex.RUnlock()
	if found {
		return approvals, true
	}
	of, found := x.namespaces.Get("", namespace)
	if !found {
		return nil, false
	}
	for _, a := range x.all() {
		if a.SelectsNamespace(namespace, of.labels) {
			approvals = append(approvals, a)
		}
	}
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.version == version {
		x.memo[namespace] = approvals
	}
	return approvals, true
}

// all returns the approvals, sorted by name.
func (x *index) all() []*approval.Approval {
	x.mutex.RLock()
	sorted, version := x.sorted, x.version
	x.mutex.RUnlock()
	if sorted != nil {
		return sorted
	}
	sorted = x.approvals.List()
	slices.SortFunc(sorted, func(a, b *approval.Approval) int { return cmp.Compare(a.Name(), b.Name()) })
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.version == version {
		x.sorted = sorted
	}
	return sorted
}

func (x *index) namespacesOf(a *approval.Approval) []string {
	var names []string
	x.namespaces.Range(func(name types.NamespacedName, of labels) bool {
		if a.SelectsNamespace(name.Name, of.labels) {
			names = append(names, name.Name)
		}
		return true
	})
	slices.Sort(names)
	return names
}

// size counts the cached approvals and the governed namespaces.
func (x *index) size() (valid, invalid, governed int) {
	approvals := x.all()
	for _, a := range approvals {
		if a.Err() != nil {
			invalid++
		}
	}
	var names []string
	x.namespaces.Range(func(name types.NamespacedName, _ labels) bool {
		names = append(names, name.Name)
		return true
	})
	for _, name := range names {
		if selecting, _ := x.approvalsFor(name); len(selecting) > 0 {
			governed++
		}
	}
	return len(approvals) - invalid, invalid, governed
}
