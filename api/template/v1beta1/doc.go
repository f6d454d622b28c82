// Package v1beta1 holds the kinds VirtualMachineTemplate and
// VirtualMachineTemplateRequest of the API group template.kubevirt.io, in the
// version that is stored; the deprecated v1alpha1 has the same fields. The group
// is KubeVirt's published one (enhancement VEP 76). All fields that Stencil adds
// to it are optional and described as Stencil's own.
//
// +kubebuilder:object:generate=true
// +groupName=template.kubevirt.io
package v1beta1
