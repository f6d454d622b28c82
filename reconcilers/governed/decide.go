package governed

import (
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/reconcilers/coverage"
)

// maximumNames is how many approvals an event names.
const maximumNames = 5

// change is what to do with the label of one namespace.
type change struct {
	namespace string
	// governed says whether the label has to be there.
	governed bool
	// by are the names of the approvals that cover the namespace.
	by []string
}

// decide says which labels to change, in the order of the namespaces.
func decide(namespaces []coverage.Namespace, governed map[string][]*approval.Approval) (changes []change) {
	for _, namespace := range namespaces {
		covering := governed[namespace.Name]
		value, labelled := namespace.Labels[v1alpha1.LabelGoverned]
		switch {
		// It takes its label with it.
		case namespace.Terminating:
		case len(covering) > 0 && value != v1alpha1.LabelGovernedValue:
			one := change{namespace: namespace.Name, governed: true}
			for _, a := range covering {
				one.by = append(one.by, a.Name())
			}
			changes = append(changes, one)
		case len(covering) == 0 && labelled:
			changes = append(changes, change{namespace: namespace.Name})
		}
	}
	return changes
}

// note tells people what the change means.
func (c change) note() string {
	if !c.governed {
		return "no TemplateApproval covers this namespace any more: VirtualMachines may be created here without an approved template"
	}
	names, more := c.by, ""
	if len(names) > maximumNames {
		more = fmt.Sprintf(" and %d more", len(names)-maximumNames)
		names = names[:maximumNames]
	}
	return fmt.Sprintf("covered by TemplateApproval %s%s: VirtualMachines here must come from an approved template",
		strings.Join(names, ", "), more)
}
