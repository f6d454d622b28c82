package coverage

import (
	"slices"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
)

// Namespace is what matters of a namespace.
type Namespace struct {
	Name            string
	Labels          map[string]string
	ResourceVersion string
	// Approvals is the annotation of that name; see v1alpha1.AnnotationApprovals.
	Approvals string
	// Terminating says that it is being deleted.
	Terminating bool
}

// Approval is a TemplateApproval, as it is stored and compiled. One that does not compile is closed: see approval.Closed.
type Approval struct {
	*approval.Approval
	// Object must not be changed.
	Object *v1alpha1.TemplateApproval
}

// Snapshot is what the watches knew at one moment.
type Snapshot struct {
	// Approvals are sorted by name.
	Approvals []Approval
	// Namespaces are sorted by name.
	Namespaces []Namespace
}

// Governed returns the namespaces that some approval covers, each with the approvals that do, in the order of their names.
func (s Snapshot) Governed() map[string][]*approval.Approval {
	named := map[string][]int{}
	var selecting []int
	for i, a := range s.Approvals {
		for _, namespace := range a.Object.Spec.Namespaces {
			named[namespace] = append(named[namespace], i)
		}
		if a.CoversByLabels() {
			selecting = append(selecting, i)
		}
	}
	governed := map[string][]*approval.Approval{}
	for _, namespace := range s.Namespaces {
		candidates := selecting
		if listed := named[namespace.Name]; len(listed) > 0 {
			candidates = append(slices.Clone(selecting), listed...)
			slices.Sort(candidates)
			candidates = slices.Compact(candidates)
		}
		for _, i := range candidates {
			if a := s.Approvals[i].Approval; a.Covers(namespace.Name, namespace.Labels) {
				governed[namespace.Name] = append(governed[namespace.Name], a)
			}
		}
	}
	return governed
}
