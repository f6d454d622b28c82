// Package governed writes the effect of the TemplateApprovals to every namespace: label stencil.kubevirt.io/governed, and on namespaces
// where an approval denies annotation stencil.kubevirt.io/approvals. The admission policies read both. Package approval computes them
// ([approval.StateOf]).
//
// It also writes the ConfigMap stencil-approval-index ([approval.NamespaceIndex]). Policies use it to check namespaces that have no label
// yet, and changes of labels. The index is written before the labels, so that an undecided namespace is closed before an approval is
// active. Only the first index is written after them: the bindings of the policies that read it are created when it exists, and at a first
// installation all namespaces are undecided.
//
// The condition Active of a TemplateApproval is true when all namespaces that it selects carry its present generation.
//
// It runs on the leader. Gather: the approvals and namespaces that package coverage watches. Decide ([decide], pure): which labels and
// annotations to write. An approval that does not compile selects its namespaces and approves nothing. Apply: one patch for each namespace,
// which fails when the namespace has changed since it was read, and an event when its label changes.
package governed
