package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
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
	Decisions []Decision `json:"decisions,omitempty"`
}

// Effect is what becomes of a VirtualMachine by a decision.
//
// +kubebuilder:validation:Enum=allow;warn;deny
type Effect string

// The effects.
const (
	// EffectAllow is that there is nothing against it, or nothing that anybody is told.
	EffectAllow Effect = "allow"
	// EffectWarn is that it is created, and the caller warned.
	EffectWarn Effect = "warn"
	// EffectDeny is that it is not created.
	EffectDeny Effect = "deny"
)

// Kinds of what decides, beside the admission of the cluster.
const (
	// DecisionKindApproval is a TemplateApproval.
	DecisionKindApproval = "TemplateApproval"
	// DecisionKindPolicy is a VirtualMachinePolicy.
	DecisionKindPolicy = "VirtualMachinePolicy"
	// DecisionKindRules are the rules that came with the machine, from its template or in
	// its own annotation.
	DecisionKindRules = "Rules"
)

// Decision is what one approval, policy or other admission says about a VirtualMachine.
type Decision struct {
	// Decision is what would become of the VirtualMachine by it.
	//
	// +required
	Decision Effect `json:"decision"`

	// Kind says what decides: TemplateApproval, VirtualMachinePolicy, Rules, or nothing
	// when it is some other admission of the cluster.
	//
	// +optional
	Kind string `json:"kind,omitempty"`

	// Policy is the name of the approval or policy, or whose rules these are.
	//
	// +optional
	Policy string `json:"policy,omitempty"`

	// Message says what is wrong. It never holds the value of a sensitive parameter.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Field is the place in the VirtualMachine, or the parameter, that it is about.
	//
	// +optional
	Field string `json:"field,omitempty"`

	// Fix says what to do about it, when a policy says so.
	//
	// +optional
	Fix string `json:"fix,omitempty"`
}
