package v1beta1

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	templatev1beta1 "github.com/vmstencil/stencil/api/template/v1beta1"
)

// AvailableTemplate is a template that the caller may use for a VirtualMachine in the
// namespace of the request. Its name is NAMESPACE.NAME of the template, its namespace that of
// the request, and its labels are those of the template.
//
// +kubebuilder:object:root=true
type AvailableTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// TemplateRef names the template, by namespace and name.
	//
	// +required
	TemplateRef corev1.ObjectReference `json:"templateRef"`

	// DisplayName is the name for users, from annotation openshift.io/display-name.
	//
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// Description is what the template is for, from annotation description.
	//
	// +optional
	Description string `json:"description,omitempty"`

	// Icon is the name of an icon, from annotation iconClass.
	//
	// +optional
	Icon string `json:"icon,omitempty"`

	// Tags are those of annotation tags.
	//
	// +optional
	// +listType=atomic
	Tags []string `json:"tags,omitempty"`

	// Ready reports whether VirtualMachines can be created from the template now.
	//
	// +required
	Ready Readiness `json:"ready"`

	// Allowed reports whether the approvals of the namespace allow a VirtualMachine of the
	// template. If false, Reasons are set and Variants are not.
	//
	// +required
	Allowed bool `json:"allowed"`

	// Enforcement specifies what happens to a VirtualMachine that satisfies no approval. If
	// empty, no approval selects the namespace.
	//
	// +optional
	Enforcement v1alpha1.Enforcement `json:"enforcement,omitempty"`

	// Variants are the ways in which a VirtualMachine of the template is allowed: the values of
	// its parameters must satisfy one of them.
	//
	// +optional
	// +listType=atomic
	Variants []TemplateVariant `json:"variants,omitempty"`

	// Reasons are why no approval allows a VirtualMachine of the template.
	//
	// +optional
	// +listType=atomic
	Reasons []string `json:"reasons,omitempty"`

	// Schema is a JSON Schema, draft 2020-12, of the parameters of a request to process and
	// create. It is set if Allowed is true.
	//
	// +optional
	Schema *runtime.RawExtension `json:"schema,omitempty"`
}

// SettableParameters returns the names of the parameters that a variant lets users set, with a
// star behind those that every variant requires.
func (t *AvailableTemplate) SettableParameters() []string {
	var names []string
	required := map[string]int{}
	for _, variant := range t.Variants {
		for i := range variant.Parameters {
			p := &variant.Parameters[i]
			if !p.Fixed && !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
			if p.Required {
				required[p.Name]++
			}
		}
	}
	for i, name := range names {
		if required[name] == len(t.Variants) {
			names[i] += "*"
		}
	}
	return names
}

// Readiness is the condition Ready of a template.
type Readiness struct {
	// Status is True, False or Unknown.
	//
	// +required
	Status metav1.ConditionStatus `json:"status"`

	// Reason is the reason of the condition.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message describes the reason.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// TemplateVariant is one way in which a VirtualMachine of a template is allowed.
type TemplateVariant struct {
	// Approvals are the TemplateApprovals that allow it, with the same rules for the
	// parameters. It is empty if the caller needs no approval.
	//
	// +optional
	// +listType=atomic
	Approvals []string `json:"approvals,omitempty"`

	// Parameters are those of the template, in its order, narrowed by the approval.
	//
	// +optional
	// +listType=atomic
	Parameters []AvailableParameter `json:"parameters,omitempty"`
}

// AvailableParameter is a parameter of a template, with the values that both the template and
// an approval allow.
type AvailableParameter struct {
	// Name is the name of the parameter.
	//
	// +required
	Name string `json:"name"`

	// DisplayName is shown by user interfaces in place of the name.
	//
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// Description describes the purpose of the parameter.
	//
	// +optional
	Description string `json:"description,omitempty"`

	// Type is the type of values; the default is string.
	//
	// +optional
	Type templatev1beta1.ParameterType `json:"type,omitempty"`

	// Default is the value that is used if none is given. A sensitive one is not shown.
	//
	// +optional
	Default string `json:"default,omitempty"`

	// Generated is true if the template generates a value if none is given.
	//
	// +optional
	Generated bool `json:"generated,omitempty"`

	// Fixed is true if the approval does not list the parameter: its value is Default, or a
	// value that the template generates.
	//
	// +optional
	Fixed bool `json:"fixed,omitempty"`

	// Required is true if a value must be given.
	//
	// +optional
	Required bool `json:"required,omitempty"`

	// NonEmpty is true if an empty value is rejected.
	//
	// +optional
	NonEmpty bool `json:"nonEmpty,omitempty"`

	// Multiline is true if values may have line breaks.
	//
	// +optional
	Multiline bool `json:"multiline,omitempty"`

	// Sensitive is true if values are secret. Its listed values are not shown.
	//
	// +optional
	Sensitive bool `json:"sensitive,omitempty"`

	// Mutable is true if the value may change on a stored VirtualMachine.
	//
	// +optional
	Mutable bool `json:"mutable,omitempty"`

	// Enum lists the values that are allowed; if empty, others are.
	//
	// +optional
	// +listType=atomic
	Enum []string `json:"enum,omitempty"`

	// Patterns are regular expressions (RE2). The whole value must match each.
	//
	// +optional
	// +listType=atomic
	Patterns []string `json:"patterns,omitempty"`

	// Minimum is the lowest value that is allowed.
	//
	// +optional
	Minimum *int64 `json:"minimum,omitempty"`

	// Maximum is the highest value that is allowed.
	//
	// +optional
	Maximum *int64 `json:"maximum,omitempty"`

	// Requirements are further rules for values, in words, such as the message of an
	// expression of an approval.
	//
	// +optional
	// +listType=atomic
	Requirements []string `json:"requirements,omitempty"`
}

// AvailableTemplateList is a list of AvailableTemplates, sorted by namespace and name of the
// template.
//
// +kubebuilder:object:root=true
type AvailableTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty,omitzero"`

	Items []AvailableTemplate `json:"items"`
}
