package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	virtv1 "kubevirt.io/api/core/v1"
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
	// stored by create. What process renders of a stored template refers to the template
	// if the caller may use it, and can be created as it is.
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
	Decisions []Decision `json:"decisions,omitempty"`
}

// Effect is the effect of a decision on a VirtualMachine.
//
// +kubebuilder:validation:Enum=allow;warn;deny
type Effect string

// The effects.
const (
	// EffectAllow is that the VirtualMachine is created without a message to the
	// caller.
	EffectAllow Effect = "allow"
	// EffectWarn is that it is created, with a warning to the caller.
	EffectWarn Effect = "warn"
	// EffectDeny is that it is not created.
	EffectDeny Effect = "deny"
)

// Kinds of the sources of a decision, beside other admission of the cluster.
const (
	// DecisionKindApproval is a TemplateApproval.
	DecisionKindApproval = "TemplateApproval"
	// DecisionKindPolicy is a VirtualMachinePolicy.
	DecisionKindPolicy = "VirtualMachinePolicy"
	// DecisionKindRules are the validation rules of the VirtualMachine, from its template
	// or its own annotation.
	DecisionKindRules = "Rules"
)

// Decision is the decision of one approval, policy or other admission about a
// VirtualMachine.
type Decision struct {
	// Decision is the effect on the VirtualMachine.
	//
	// +required
	Decision Effect `json:"decision"`

	// Kind is the source of the decision: TemplateApproval, VirtualMachinePolicy or
	// Rules; empty for other admission of the cluster.
	//
	// +optional
	Kind string `json:"kind,omitempty"`

	// Policy is the name of the approval or policy, or the source of the rules, such as
	// "template golden/fedora".
	//
	// +optional
	Policy string `json:"policy,omitempty"`

	// Message describes the problem. It never contains the value of a sensitive
	// parameter.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Field is the field of the VirtualMachine, or the parameter, that the decision is
	// about.
	//
	// +optional
	Field string `json:"field,omitempty"`

	// Fix describes how to solve the problem, if the policy specifies it.
	//
	// +optional
	Fix string `json:"fix,omitempty"`
}
