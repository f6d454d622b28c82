package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VirtualMachineTemplateRequest asks for a VirtualMachineTemplate to be made
// from a VirtualMachine.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:shortName=vmtr;vmtrs
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Template",type=string,JSONPath=`.status.templateRef.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
type VirtualMachineTemplateRequest struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// Spec is what is asked for. It cannot be changed.
	//
	// +required
	Spec VirtualMachineTemplateRequestSpec `json:"spec"`

	// Status is how far the request has come.
	//
	// +optional
	Status VirtualMachineTemplateRequestStatus `json:"status,omitempty,omitzero"`
}

// VirtualMachineTemplateRequestList is a list of VirtualMachineTemplateRequests.
//
// +kubebuilder:object:root=true
type VirtualMachineTemplateRequestList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty,omitzero"`

	Items []VirtualMachineTemplateRequest `json:"items"`
}

// VirtualMachineTemplateRequestSpec is what a VirtualMachineTemplateRequest
// asks for.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable"
type VirtualMachineTemplateRequestSpec struct {
	// VirtualMachineRef names the VirtualMachine to be captured.
	//
	// +required
	VirtualMachineRef VirtualMachineReference `json:"virtualMachineRef"`

	// TemplateName is the name of the new template. The default is the name of
	// the request.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	TemplateName string `json:"templateName,omitempty"`

	// TemplateLabels are put on the new template. No key may start with
	// template.kubevirt.io/.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('template.kubevirt.io/'))",message="keys must not start with template.kubevirt.io/"
	TemplateLabels map[string]string `json:"templateLabels,omitempty"`

	// TTLSecondsAfterFinished is how many seconds after its success a request is
	// deleted; 0 deletes it at once. Without it the request stays. A request that
	// has failed always stays.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// VirtualMachineReference names a VirtualMachine.
type VirtualMachineReference struct {
	// Namespace is the namespace of the VirtualMachine.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// Name is the name of the VirtualMachine.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// VirtualMachineTemplateRequestStatus is how far a
// VirtualMachineTemplateRequest has come.
type VirtualMachineTemplateRequestStatus struct {
	// Conditions are the observations; the types are Ready and Progressing.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// TemplateRef names the template that was made, in the request's namespace.
	//
	// +optional
	TemplateRef *corev1.LocalObjectReference `json:"templateRef,omitempty"`
}
