// Package governed keeps the label stencil.kubevirt.io/governed on the namespaces that some approval covers, and on no others.
//
// The label only decides which VirtualMachines without a template are sent to the webhooks, for a helpful answer.
// Nothing is allowed or refused because of it.
//
// Beside it, it keeps the annotation stencil.kubevirt.io/approved-templates on namespaces that several approvals cover. That one does
// decide: the policy approved-templates, which the API server evaluates for one approval at a time, refuses a template that neither
// this approval nor the annotation lists. Where the list is missing or old, more is refused or left to the webhooks; nothing is
// allowed by it.
//
// It runs on the leader. Gather: the approvals and namespaces that package coverage watches. Decide ([decide], pure):
// which labels and lists are missing, too many, or others. An approval that cannot be understood covers its namespaces all the
// same. Apply: a patch of these two keys, and an event about the namespace when its label changes.
package governed
