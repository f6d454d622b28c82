package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LabelSelector selects objects by their labels. It has the form and the meaning
// of a Kubernetes label selector: all requirements must be met, and a selector
// without requirements selects everything. Unlike the Kubernetes type it has size
// limits, which rules in the definition and admission policies require.
type LabelSelector struct {
	// MatchLabels are labels that an object must have with these values.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) >= 1 && size(key) <= 317 && size(self[key]) <= 63)",message="a key has 1 to 317 characters, a value at most 63"
	MatchLabels map[string]string `json:"matchLabels,omitempty"`

	// MatchExpressions are requirements that go beyond equality.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MatchExpressions []LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// LabelSelectorRequirement is one requirement of a LabelSelector.
//
// +kubebuilder:validation:XValidation:rule="self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : !has(self.values) || size(self.values) == 0",message="operators In and NotIn need values; Exists and DoesNotExist take none",fieldPath=".values"
type LabelSelectorRequirement struct {
	// Key is the key of the label.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Key string `json:"key"`

	// Operator is In, NotIn, Exists or DoesNotExist. NotIn also holds for objects
	// that have no such label.
	//
	// +required
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator metav1.LabelSelectorOperator `json:"operator"`

	// Values are the values that In and NotIn compare with.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
	Values []string `json:"values,omitempty"`
}
