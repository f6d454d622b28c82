package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// VirtualMachineTemplateRequest requests the creation of a VirtualMachineTemplate from
// a VirtualMachine.
//
// +kubebuilder:object:root=true
// +kubebuilder:deprecatedversion:warning="template.kubevirt.io/v1alpha1 VirtualMachineTemplateRequest is deprecated; use template.kubevirt.io/v1beta1"
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

	// Spec is the requested capture. It is immutable.
	//
	// +required
	Spec v1beta1.VirtualMachineTemplateRequestSpec `json:"spec"`

	// Status is the progress of the request.
	//
	// +optional
	Status v1beta1.VirtualMachineTemplateRequestStatus `json:"status,omitempty,omitzero"`
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
