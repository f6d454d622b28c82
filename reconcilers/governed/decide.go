package governed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/reconcilers/coverage"
)

// maximumNames is how many approvals an event names.
const maximumNames = 5

// change is what to do with the label and the annotation of one namespace.
type change struct {
	namespace string
	// governed says whether the label has to be there.
	governed bool
	// relabelled says whether that is new.
	relabelled bool
	// approved is what the annotation has to say; empty when it must not be there.
	approved string
	// by are the names of the approvals that cover the namespace.
	by []string
}

// decide says which labels and annotations to change, in the order of the namespaces.
func decide(namespaces []coverage.Namespace, governed map[string][]*approval.Approval) (changes []change) {
	for _, namespace := range namespaces {
		covering := governed[namespace.Name]
		value, labelled := namespace.Labels[v1alpha1.LabelGoverned]
		one := change{namespace: namespace.Name, governed: len(covering) > 0, approved: approvedTemplates(covering)}
		one.relabelled = one.governed && value != v1alpha1.LabelGovernedValue || !one.governed && labelled
		// One that is being deleted takes its label with it.
		if namespace.Terminating || !one.relabelled && one.approved == namespace.ApprovedTemplates {
			continue
		}
		for _, a := range covering {
			one.by = append(one.by, a.Name())
		}
		changes = append(changes, one)
	}
	return changes
}

// maximumList is how many bytes the annotation has at most. All annotations of an object have 256 KiB in common.
const maximumList = 16 << 10

// approvedTemplates returns what the annotation of a namespace says that these approvals cover. One alone says everything by itself.
// A list that would be too long names namespaces only, and at last everything: it is there to refuse what cannot be approved, and
// what it lets pass is still judged.
func approvedTemplates(covering []*approval.Approval) string {
	if len(covering) < 2 {
		return ""
	}
	var listed, namespaces []string
	for _, a := range covering {
		for _, entry := range a.Listed() {
			namespace, _, _ := strings.Cut(entry, "/")
			listed, namespaces = append(listed, entry), append(namespaces, namespace+"/*")
		}
	}
	for _, entries := range [][]string{listed, namespaces} {
		slices.Sort(entries)
		if list := strings.Join(slices.Compact(entries), ","); len(list) <= maximumList {
			return list
		}
	}
	return "*"
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
