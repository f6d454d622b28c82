package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PolicyTest is one request and what the policy must say of it.
type PolicyTest struct {
	// Name tells the tests of a policy apart; a sentence is best.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`

	// Input is the request.
	//
	// +required
	Input PolicyTestInput `json:"input"`

	// Parameters is what the module reads as data.parameters in this test. Without it
	// these are the policy's own. A test that gives them keeps its meaning when the
	// policy is used with other ones.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`

	// Deny are the messages of the rule deny, all of them, in any order.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	Deny []string `json:"deny,omitempty"`

	// Warn are the messages of the rule warn, all of them, in any order.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	Warn []string `json:"warn,omitempty"`
}

// PolicyTestInput is the part of a module's input that a test gives. What it leaves
// out is as it would be in a request without it.
//
// +kubebuilder:validation:XValidation:rule="has(self.object) || has(self.oldObject)",message="object or, for a DELETE, oldObject must be given",fieldPath=".object",reason=FieldValueRequired
type PolicyTestInput struct {
	// Operation is what is done. By default it is UPDATE when both object and oldObject
	// are given, DELETE with oldObject alone, and CREATE otherwise.
	//
	// +optional
	Operation PolicyOperation `json:"operation,omitempty"`

	// Object is input.object: the VirtualMachine, template or request.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Object *runtime.RawExtension `json:"object,omitempty"`

	// OldObject is input.oldObject: the same before the request.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	OldObject *runtime.RawExtension `json:"oldObject,omitempty"`

	// Template is input.template: the template that the VirtualMachine refers to, with
	// namespace, name, labels, annotations and parameters.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Template *runtime.RawExtension `json:"template,omitempty"`

	// Parameters is input.parameters: the values that the template's parameters have for
	// this VirtualMachine.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Parameters map[string]string `json:"parameters,omitempty"`

	// Instancetype is input.instancetype: the VirtualMachineInstancetype or
	// VirtualMachineClusterInstancetype that the VirtualMachine names.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Instancetype *runtime.RawExtension `json:"instancetype,omitempty"`

	// Preference is input.preference: the VirtualMachinePreference or
	// VirtualMachineClusterPreference that the VirtualMachine names.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Preference *runtime.RawExtension `json:"preference,omitempty"`

	// User is who sends the request, input.request.userInfo.
	//
	// +optional
	User *PolicyTestUser `json:"user,omitempty"`

	// Time is when the request is made, input.request.time; null without it.
	//
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// NamespaceLabels are the labels of the object's namespace,
	// input.namespace.labels.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`

	// NamespaceAnnotations are the annotations of the object's namespace,
	// input.namespace.annotations.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	NamespaceAnnotations map[string]string `json:"namespaceAnnotations,omitempty"`
}

// PolicyTestUser is who sends a test's request.
type PolicyTestUser struct {
	// Username is the name that authentication gives.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Username string `json:"username,omitempty"`

	// Groups are the groups that authentication gives.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=512
	Groups []string `json:"groups,omitempty"`
}
