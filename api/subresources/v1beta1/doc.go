// Package v1beta1 holds the kinds of the aggregated API group
// subresources.template.kubevirt.io: the requests to the subresources process
// and create of a VirtualMachineTemplate, and the responses. The deprecated
// v1alpha1 has the same fields.
//
// +kubebuilder:object:generate=true
// +groupName=subresources.template.kubevirt.io
package v1beta1
