// Package v1alpha1 holds the deprecated version of the aggregated API group
// subresources.template.kubevirt.io: the requests to the subresources process
// and create of a VirtualMachineTemplate, and the responses.
//
// +kubebuilder:object:generate=true
// +groupName=subresources.template.kubevirt.io
package v1alpha1
