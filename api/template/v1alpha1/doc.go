// Package v1alpha1 holds the deprecated version of the API group
// template.kubevirt.io. It is served for clients that do not support a newer
// version, and never stored.
//
// Its kinds consist of the types of v1beta1, so that a conversion in Go is
// v1beta1.VirtualMachineTemplate(object), and the two schemas cannot differ.
//
// +kubebuilder:object:generate=true
// +groupName=template.kubevirt.io
package v1alpha1
