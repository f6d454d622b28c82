// Package v1alpha1 holds the kinds of the API group stencil.kubevirt.io, which
// Stencil defines. A TemplateApproval specifies which templates are approved in
// which namespaces. A VirtualMachinePolicy specifies further rules for
// VirtualMachines in Rego.
//
// Every list and every string in a spec has a maximum length, so that the API
// server can evaluate the rules in the definitions and ValidatingAdmissionPolicies
// can loop over stored values.
//
// +kubebuilder:object:generate=true
// +groupName=stencil.kubevirt.io
package v1alpha1
