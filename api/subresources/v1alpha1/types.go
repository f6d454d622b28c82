package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
)

// VirtualMachineTemplate is the parent of the subresources process and create.
// It says nothing of its own: the template itself is an object of
// template.kubevirt.io.
//
// +kubebuilder:object:root=true
type VirtualMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
}

// ProcessOptions is what is sent to process and create.
//
// +kubebuilder:object:root=true
type ProcessOptions struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// Parameters are the values of the template's parameters, by name.
	//
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`

	// TargetNamespace is where create creates the VirtualMachine; the namespace of
	// the template when empty. In another one the caller needs the right to create
	// virtualmachinetemplates/create there as well. It means nothing to process,
	// unless explain asks what would happen there.
	//
	// +optional
	TargetNamespace string `json:"targetNamespace,omitempty"`

	// Explain asks what approvals, policies and every other admission would say about
	// this VirtualMachine if the caller created it now. The answer has it in decisions.
	//
	// +optional
	Explain bool `json:"explain,omitempty"`
}

// ProcessedVirtualMachineTemplate is what process and create answer with.
//
// +kubebuilder:object:root=true
type ProcessedVirtualMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// TemplateRef names the template that was processed.
	//
	// +optional
	TemplateRef *corev1.ObjectReference `json:"templateRef,omitempty"`

	// VirtualMachine is the VirtualMachine that came out of it: rendered by
	// process, rendered and stored by create.
	//
	// +required
	VirtualMachine *virtv1.VirtualMachine `json:"virtualMachine"`

	// Message is the template's message, with its placeholders replaced.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Decisions are what would be said about the VirtualMachine if the caller created
	// it, denials first. They are there when explain asks for them; none means that
	// nothing judges it.
	//
	// +optional
	// +listType=atomic
	Decisions []v1beta1.Decision `json:"decisions,omitempty"`
}
