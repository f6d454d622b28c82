package coverage

import (
	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
)

// Namespace is what matters of a namespace.
type Namespace struct {
	Name   string
	Labels map[string]string
	// ApprovedTemplates is the annotation of that name; see v1alpha1.AnnotationApprovedTemplates.
	ApprovedTemplates string
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
	governed := map[string][]*approval.Approval{}
	for _, namespace := range s.Namespaces {
		for _, a := range s.Approvals {
			if a.Covers(namespace.Name, namespace.Labels) {
				governed[namespace.Name] = append(governed[namespace.Name], a.Approval)
			}
		}
	}
	return governed
}
