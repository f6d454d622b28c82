// Package governed keeps the label stencil.kubevirt.io/governed on the namespaces that some approval covers, and on no others.
//
// The label only decides which VirtualMachines without a template are sent to the webhooks, for a helpful answer.
// Nothing is allowed or refused because of it.
//
// It runs on the leader. Gather: the approvals and namespaces that package coverage watches. Decide ([decide], pure):
// which labels are missing and which are too many. An approval that cannot be understood covers its namespaces all the
// same. Apply: a patch of this one label, and an event about the namespace.
package governed
