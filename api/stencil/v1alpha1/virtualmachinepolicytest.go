package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PolicyTest is one request and the messages that the policy must return for it.
type PolicyTest struct {
	// Name is the unique name of the test within the policy, preferably a sentence.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`

	// Input is the request.
	//
	// +required
	Input PolicyTestInput `json:"input"`

	// Parameters is the value of data.parameters in this test; the default is the
	// parameters of the policy. A test with its own parameters remains valid when the
	// parameters of the policy change.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`

	// Data are the values of data.cluster in this test, by name. A test needs all that the
	// policy declares.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Data *runtime.RawExtension `json:"data,omitempty"`

	// Deny are all messages of the rule deny, in any order.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	Deny []string `json:"deny,omitempty"`

	// Warn are all messages of the rule warn, in any order.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	Warn []string `json:"warn,omitempty"`
}

// PolicyTestInput is the part of a module's input that a test sets. Fields that are not
// set have the values of a request without them. operation, time, user,
// namespaceLabels and namespaceAnnotations are short forms of fields of request and
// namespace.
//
// +kubebuilder:validation:XValidation:rule="has(self.object) || has(self.oldObject)",message="object or, for a DELETE, oldObject must be given",fieldPath=".object",reason=FieldValueRequired
type PolicyTestInput struct {
	// Request is input.request.
	//
	// +optional
	Request *PolicyTestRequest `json:"request,omitempty"`

	// Namespace is input.namespace.
	//
	// +optional
	Namespace *PolicyTestNamespace `json:"namespace,omitempty"`

	// Operation is the operation of the request. The default is UPDATE if both object
	// and oldObject are given, DELETE with oldObject alone, and CREATE otherwise.
	//
	// +optional
	Operation PolicyOperation `json:"operation,omitempty"`

	// Object is input.object: the VirtualMachine, template or request.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Object *runtime.RawExtension `json:"object,omitempty"`

	// OldObject is input.oldObject: the object before the request.
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

	// Objects is input.objects: the objects that are created with the VirtualMachine
	// because its template has them. The values of Secrets are "***" in a cluster.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:XPreserveUnknownFields
	Objects []runtime.RawExtension `json:"objects,omitempty"`

	// User is the user that sends the request, input.request.userInfo.
	//
	// +optional
	User *PolicyTestUser `json:"user,omitempty"`

	// Time is the time of the request, input.request.time; null if it is not set.
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

// PolicyTestUser is the user that sends the request of a test.
type PolicyTestUser struct {
	// Username is the authenticated name.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Username string `json:"username,omitempty"`

	// Groups are the authenticated groups.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=512
	Groups []string `json:"groups,omitempty"`

	// UID is the authenticated UID.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	UID string `json:"uid,omitempty"`

	// Extra are further attributes of the user.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Extra map[string][]string `json:"extra,omitempty"`
}

// PolicyTestRequest is input.request of a test.
type PolicyTestRequest struct {
	// Operation is the operation of the request; see operation of the input.
	//
	// +optional
	Operation PolicyOperation `json:"operation,omitempty"`

	// Kind is the kind of the object. The default is kind of the object, and the first
	// kind of the policy if the object has none.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// RequestKind is the kind that was sent, if it differs from kind. The default is kind
	// of the object.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	RequestKind string `json:"requestKind,omitempty"`

	// Namespace is the namespace of the object. The default is metadata.namespace of the
	// object.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// Name is the name of the object. The default is metadata.name of the object.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// UserInfo is the user that sends the request.
	//
	// +optional
	UserInfo *PolicyTestUser `json:"userInfo,omitempty"`

	// DryRun is true if nothing is stored.
	//
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// Time is the time of the request; null if it is not set.
	//
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}

// PolicyTestNamespace is input.namespace of a test.
type PolicyTestNamespace struct {
	// Name is the name of the object's namespace. The default is metadata.namespace of
	// the object.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// Labels are its labels.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations are its annotations.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}
