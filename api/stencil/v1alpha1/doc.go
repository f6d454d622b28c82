// Package v1alpha1 holds the kinds of the API group stencil.kubevirt.io, which is
// Stencil's own. With a TemplateApproval a cluster admin says which templates are
// approved in which namespaces, with a VirtualMachinePolicy, in Rego, what else
// VirtualMachines must and must not be.
//
// Every list and every string in a spec is bounded, so that the rules in the
// definitions can be checked by the API server and ValidatingAdmissionPolicies can
// loop over what is stored.
//
// +kubebuilder:object:generate=true
// +groupName=stencil.kubevirt.io
package v1alpha1
