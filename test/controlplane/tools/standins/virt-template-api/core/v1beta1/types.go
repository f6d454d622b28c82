// Package v1beta1 stands in for KubeVirt's type of a template: the fields that its programs read.
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of templates.
var GroupVersion = schema.GroupVersion{Group: "template.kubevirt.io", Version: "v1beta1"}

// ConditionReady is the type of the condition of a template that can be used.
const ConditionReady = "Ready"

// VirtualMachineTemplate is a template.
type VirtualMachineTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   VirtualMachineTemplateSpec   `json:"spec"`
	Status VirtualMachineTemplateStatus `json:"status"`
}

// VirtualMachineTemplateSpec is what a template makes. It has all published fields: KubeVirt's exporter drops others.
type VirtualMachineTemplateSpec struct {
	VirtualMachine *runtime.RawExtension `json:"virtualMachine,omitempty"`
	Parameters     []Parameter           `json:"parameters,omitempty"`
	Message        string                `json:"message,omitempty"`
}

// Parameter is a parameter of a template.
type Parameter struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	Description string `json:"description,omitempty"`
	Value       string `json:"value,omitempty"`
	Generate    string `json:"generate,omitempty"`
	From        string `json:"from,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// VirtualMachineTemplateStatus is the status of a template.
type VirtualMachineTemplateStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DeepCopy returns a copy.
func (t *VirtualMachineTemplate) DeepCopy() *VirtualMachineTemplate {
	made := &VirtualMachineTemplate{TypeMeta: t.TypeMeta}
	t.ObjectMeta.DeepCopyInto(&made.ObjectMeta)
	if t.Spec.VirtualMachine != nil {
		made.Spec.VirtualMachine = t.Spec.VirtualMachine.DeepCopy()
	}
	made.Spec.Message = t.Spec.Message
	made.Spec.Parameters = append(made.Spec.Parameters, t.Spec.Parameters...)
	for _, condition := range t.Status.Conditions {
		made.Status.Conditions = append(made.Status.Conditions, *condition.DeepCopy())
	}
	return made
}

// DeepCopyObject implements runtime.Object.
func (t *VirtualMachineTemplate) DeepCopyObject() runtime.Object { return t.DeepCopy() }
