package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// VirtualMachineTemplate is a VirtualMachine with placeholders, and the
// parameters that fill them.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
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
	Spec VirtualMachineTemplateSpec `json:"spec"`

	// Status is what was last observed of the template.
	//
	// +optional
	Status VirtualMachineTemplateStatus `json:"status,omitempty,omitzero"`
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

// VirtualMachineTemplateSpec is the content of a VirtualMachineTemplate.
type VirtualMachineTemplateSpec struct {
	// VirtualMachine is the VirtualMachine (kubevirt.io/v1) to be rendered.
	// ${NAME} anywhere in a string or in a map key is replaced by the value of
	// the parameter NAME; a string that is ${{NAME}} and nothing else is
	// replaced, quotes included, by that value read as JSON. ${NAME|ENCODER}
	// inserts the value encoded as base64, json, sh or yaml. $${ stands for a
	// literal ${. The fields apiVersion and kind may be omitted. Of metadata,
	// only name, generateName, namespace, labels and annotations are used. A
	// namespace is dropped, unless it holds a placeholder.
	//
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	VirtualMachine *runtime.RawExtension `json:"virtualMachine"`

	// Parameters are the values that differ from one VirtualMachine to the next.
	// Their names must be unique.
	// ---
	// The rule compares every pair of names, which fits into the cost limit of
	// an API server for up to 100 names. The template webhook checks longer
	// lists.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="size(self) > 100 || self.all(p, self.exists_one(q, q.name == p.name))",message="parameter names must be unique"
	Parameters []Parameter `json:"parameters,omitempty"`

	// Message explains to the user who rendered the template how to use the new
	// VirtualMachine. Its placeholders are replaced as well.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// ObjectLabels are put on the VirtualMachine and on its spec.template, and
	// thereby on the VirtualMachineInstance, on each of the other objects, and
	// on the selectors of Services and NetworkPolicies that select the
	// VirtualMachine. Keys and values may hold placeholders. This field is
	// Stencil's own.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	ObjectLabels map[string]string `json:"objectLabels,omitempty"`

	// Objects are other objects that belong to the VirtualMachine, such as
	// Secrets, ConfigMaps and Services, with the same placeholders and
	// parameters. Each has an apiVersion and a kind without placeholders, and
	// metadata.name. Of metadata, only name, labels and annotations are used:
	// the objects are in the namespace of the VirtualMachine. The subresource
	// process returns them. Those of a VirtualMachine that refers to the
	// template are created after it, and belong to it. This field is
	// Stencil's own.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:XPreserveUnknownFields
	Objects []runtime.RawExtension `json:"objects,omitempty"`

	// Secretize moves the user data and network data of cloud-init volumes into
	// Secrets, one for each volume, named VM-VOLUME. They are other objects of
	// the template, and the volumes refer to them. So the VirtualMachine does
	// not show what the data contain. This field is Stencil's own.
	//
	// +optional
	Secretize bool `json:"secretize,omitempty"`

	// UndefinedReferences specifies what happens to ${NAME} if no parameter is
	// named NAME. Reject, the default, rejects the template. Keep leaves the
	// text unchanged, for shell scripts with many such expressions. This field
	// is Stencil's own.
	//
	// +optional
	UndefinedReferences UndefinedReferencesPolicy `json:"undefinedReferences,omitempty"`

	// Syntax is how placeholders are written. Braces, the default, is ${NAME},
	// and ${{NAME}} for a value without quotes. Parentheses is $(NAME), and
	// $((NAME)) for a value without quotes: the syntax of the first proposal of
	// templates for Kubernetes. This field is Stencil's own.
	//
	// +optional
	Syntax Syntax `json:"syntax,omitempty"`
}

// Syntax is how placeholders are written.
//
// +kubebuilder:validation:Enum=Braces;Parentheses
type Syntax string

const (
	// SyntaxBraces is ${NAME}, and ${{NAME}} for a value without quotes.
	SyntaxBraces Syntax = "Braces"

	// SyntaxParentheses is $(NAME), and $((NAME)) for a value without quotes.
	SyntaxParentheses Syntax = "Parentheses"
)

// UndefinedReferencesPolicy specifies what happens to a reference to a parameter that
// the template does not define.
//
// +kubebuilder:validation:Enum=Reject;Keep
type UndefinedReferencesPolicy string

const (
	// UndefinedReferencesReject rejects a template with undefined references.
	UndefinedReferencesReject UndefinedReferencesPolicy = "Reject"

	// UndefinedReferencesKeep leaves undefined references unchanged.
	UndefinedReferencesKeep UndefinedReferencesPolicy = "Keep"
)

// VirtualMachineTemplateStatus is what was last observed of a
// VirtualMachineTemplate.
type VirtualMachineTemplateStatus struct {
	// Conditions are the observations; the type Ready is true while the template can be
	// processed.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	TemplateSources `json:",inline"`
}
