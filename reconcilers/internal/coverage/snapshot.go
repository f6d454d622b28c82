package coverage

import (
	"maps"
	"slices"
	"sync"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
)

// Namespace is the part of a namespace that reconcilers use.
type Namespace struct {
	Name            string
	Labels          map[string]string
	ResourceVersion string
	// Approvals is the value of the annotation v1alpha1.AnnotationApprovals.
	Approvals string
	// Terminating is set if the namespace is being deleted.
	Terminating bool
}

// Approval is a TemplateApproval as stored and as compiled. One that does not compile is closed: see approval.Closed.
type Approval struct {
	*approval.Approval
	// Object must not be changed.
	Object *v1alpha1.TemplateApproval
}

// Snapshot is the state of the watches at one moment.
type Snapshot struct {
	// Approvals are sorted by name.
	Approvals []Approval
	// Namespaces are sorted by name.
	Namespaces []Namespace

	// cached is the cache of the result of Governed; nil if there is no cache.
	cached *selections
}

// Governed returns the namespaces that an approval selects, each with the approvals that select it, sorted by name. The lists must not be
// changed.
func (s Snapshot) Governed() map[string][]*approval.Approval {
	cached := s.cached
	if cached == nil {
		cached = &selections{}
	}
	return cached.of(s)
}

// selections caches which approvals select the namespaces, so that a change of one namespace does not compare all approvals with the labels
// of all namespaces: with a thousand approvals and five thousand namespaces that takes 0.2 s.
type selections struct {
	mutex      sync.Mutex
	approvals  []*approval.Approval
	namespaces map[string]selection
}

// selection is the approvals that select a namespace with these labels.
type selection struct {
	labels    map[string]string
	approvals []*approval.Approval
}

func (k *selections) of(s Snapshot) map[string][]*approval.Approval {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	compiled := make([]*approval.Approval, len(s.Approvals))
	for i, a := range s.Approvals {
		compiled[i] = a.Approval
	}
	if !slices.Equal(compiled, k.approvals) {
		k.approvals, k.namespaces = compiled, nil
	}
	find := s.finder()
	next := make(map[string]selection, len(s.Namespaces))
	governed := map[string][]*approval.Approval{}
	for _, namespace := range s.Namespaces {
		one, found := k.namespaces[namespace.Name]
		if !found || !maps.Equal(one.labels, namespace.Labels) {
			one = selection{namespace.Labels, slices.Clip(find(namespace))}
		}
		next[namespace.Name] = one
		if len(one.approvals) > 0 {
			governed[namespace.Name] = one.approvals
		}
	}
	k.namespaces = next
	return governed
}

// finder returns a function that returns the approvals that select a namespace.
func (s Snapshot) finder() func(Namespace) []*approval.Approval {
	named := map[string][]int{}
	var selecting []int
	for i, a := range s.Approvals {
		for _, namespace := range a.Object.Spec.Namespaces {
			named[namespace] = append(named[namespace], i)
		}
		if a.SelectsByLabels() {
			selecting = append(selecting, i)
		}
	}
	return func(namespace Namespace) (approvals []*approval.Approval) {
		candidates := selecting
		if listed := named[namespace.Name]; len(listed) > 0 {
			candidates = append(slices.Clone(selecting), listed...)
			slices.Sort(candidates)
			candidates = slices.Compact(candidates)
		}
		for _, i := range candidates {
			if a := s.Approvals[i].Approval; a.SelectsNamespace(namespace.Name, namespace.Labels) {
				approvals = append(approvals, a)
			}
		}
		return approvals
	}
}
