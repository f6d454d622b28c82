package governed

import (
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
)

// maximumNames is the maximum number of approvals in an event.
const maximumNames = 5

// change is a write of the label and the annotation of one namespace.
type change struct {
	namespace       string
	resourceVersion string
	state           approval.NamespaceState
	// before is the value of the label, empty when there is none.
	before string
	// approvals are the approvals that select the namespace.
	approvals []*approval.Approval
}

// plan is the result of decide.
type plan struct {
	changes []change
	// omitted maps the name of an approval to the first namespace with no room for it in the annotation.
	omitted map[string]string
}

// decide returns the labels and annotations to change, in the order of the namespaces.
func decide(snapshot coverage.Snapshot) plan {
	governed := snapshot.Governed()
	p := plan{omitted: map[string]string{}}
	states := map[string]approval.NamespaceState{}
	for _, namespace := range snapshot.Namespaces {
		// A namespace that is being deleted needs no state.
		if namespace.Terminating {
			continue
		}
		approvals := governed[namespace.Name]
		key := namesOf(approvals)
		state, known := states[key]
		if !known {
			state = approval.StateOf(approvals)
			states[key] = state
		}
		for _, a := range state.Omitted {
			if _, found := p.omitted[a.Name()]; !found {
				p.omitted[a.Name()] = namespace.Name
			}
		}
		before := namespace.Labels[v1alpha1.LabelGoverned]
		if before == state.Governed && namespace.Approvals == state.Approvals {
			continue
		}
		p.changes = append(p.changes, change{
			namespace: namespace.Name, resourceVersion: namespace.ResourceVersion,
			state: state, before: before, approvals: approvals,
		})
	}
	return p
}

func namesOf(approvals []*approval.Approval) string {
	names := make([]string, len(approvals))
	for i, a := range approvals {
		names[i] = a.Name()
	}
	return strings.Join(names, ",")
}

// note returns the text of the event about the change; empty if there is nothing to report: most namespaces change from undecided to
// ungoverned without an approval.
func (c change) note() string {
	switch {
	case c.before == c.state.Governed, c.before == "" && len(c.approvals) == 0:
		return ""
	case len(c.approvals) == 0:
		return "no TemplateApproval selects this namespace any more: VirtualMachines may be created here without an approved template"
	}
	var names []string
	for _, a := range c.approvals[:min(len(c.approvals), maximumNames)] {
		names = append(names, a.Name())
	}
	more := ""
	if len(c.approvals) > maximumNames {
		more = fmt.Sprintf(" and %d more", len(c.approvals)-maximumNames)
	}
	return fmt.Sprintf("selected by TemplateApproval %s%s: %s", strings.Join(names, ", "), more, map[string]string{
		v1alpha1.GovernedDeny:  "VirtualMachines here must come from an approved template",
		v1alpha1.GovernedWarn:  "VirtualMachines that are not approved are answered with a warning here",
		v1alpha1.GovernedAudit: "VirtualMachines that are not approved are counted here",
	}[c.state.Governed])
}
