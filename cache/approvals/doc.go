// Package approvals knows which TemplateApprovals cover a namespace, for the
// webhooks, which ask for every VirtualMachine.
//
// Two reflectors of client-go keep it current: one of the TemplateApprovals, which
// are compiled as they arrive, and one of the Namespaces, of which only the labels
// and annotations are kept; policies read both. Nobody else's word is taken for what a namespace is: the label that
// Stencil puts on governed namespaces plays no part here.
//
// It fails closed. An approval that does not compile covers its namespaces and
// approves nothing, and a namespace that has not been heard of is covered by an
// approval that approves nothing, until its labels are known.
package approvals
