package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// VirtualMachineTemplate is a VirtualMachine with placeholders, and the
// parameters that fill them.
//
// +kubebuilder:object:root=true
// +kubebuilder:deprecatedversion:warning="template.kubevirt.io/v1alpha1 VirtualMachineTemplate is deprecated; use template.kubevirt.io/v1beta1"
// +kubebuilder:resource:shortName=vmt;vmts
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Sources",type=string,JSONPath=`.status.conditions[?(@.type=="SourcesReady")].reason`
type VirtualMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// Spec is the content of the template.
	//
	// +required
	Spec v1beta1.VirtualMachineTemplateSpec `json:"spec"`

	// Status is what was last observed of the template.
	//
	// +optional
	Status v1beta1.VirtualMachineTemplateStatus `json:"status,omitempty,omitzero"`
}

// VirtualMachineTemplateList is a list of VirtualMachineTemplates.
//
// +kubebuilder:object:root=true
type VirtualMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty,omitzero"`

	Items []VirtualMachineTemplate `json:"items"`
}
