package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
)

// VirtualMachineTemplate is the parent of the subresources process and create.
// It has no content: the template itself is an object of template.kubevirt.io.
//
// +kubebuilder:object:root=true
type VirtualMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
}

// ProcessOptions is the request to process and create.
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

	// TargetNamespace is the namespace in which create creates the VirtualMachine;
	// the default is the namespace of the template. In another namespace the
	// caller needs permission to create virtualmachinetemplates/create there as
	// well. process uses it only for explain.
	//
	// +optional
	TargetNamespace string `json:"targetNamespace,omitempty"`

	// Explain requests the decisions that approvals, policies and all other admission
	// would make if the caller created this VirtualMachine now. The response contains
	// them in decisions.
	//
	// +optional
	Explain bool `json:"explain,omitempty"`
}

// ProcessedVirtualMachineTemplate is the response of process and create.
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

	// VirtualMachine is the resulting VirtualMachine: rendered by process, rendered and
	// stored by create.
	//
	// +required
	VirtualMachine *virtv1.VirtualMachine `json:"virtualMachine"`

	// Objects are the other objects of the template, rendered by process. They are
	// missing where they are created with the VirtualMachine: by create, and if the
	// VirtualMachine refers to the template.
	//
	// +optional
	// +listType=atomic
	Objects []runtime.RawExtension `json:"objects,omitempty"`

	// Message is the template's message, with its placeholders replaced.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Decisions are the decisions about the VirtualMachine if the caller created it,
	// denials first. They are set if explain is true; if empty, no approval, policy
	// or other admission has evaluated it.
	//
	// +optional
	// +listType=atomic
	Decisions []v1beta1.Decision `json:"decisions,omitempty"`
}
