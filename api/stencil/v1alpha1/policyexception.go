package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PolicyException allows certain VirtualMachines to violate certain
// VirtualMachinePolicies until a time. It applies to the creation and the update of
// VirtualMachines, and to no other object. It does not apply to a policy that could not
// be evaluated, nor to rules that the API server enforces without Stencil's manager.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Cluster,shortName=polex
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Policies",type=string,JSONPath=`.spec.policies`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.expiresAt`
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.conditions[?(@.type=="Active")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="VMs",type=integer,JSONPath=`.status.audit.virtualMachines`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PolicyException struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// Spec specifies which policies may be violated, by which VirtualMachines, and until
	// when.
	//
	// +required
	Spec PolicyExceptionSpec `json:"spec"`

	// Status is what was last observed of the exception.
	//
	// +optional
	Status PolicyExceptionStatus `json:"status,omitempty,omitzero"`
}

// PolicyExceptionList is a list of PolicyExceptions.
//
// +kubebuilder:object:root=true
type PolicyExceptionList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty,omitzero"`

	Items []PolicyException `json:"items"`
}

// PolicyExceptionSpec specifies which policies may be violated, by which
// VirtualMachines, and until when.
type PolicyExceptionSpec struct {
	// Policies are the names of the VirtualMachinePolicies that may be violated. Creating
	// or changing the exception requires verb except on each of them. A policy that does
	// not exist yet may be named.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Policies []string `json:"policies"`

	// Namespaces are the names of the namespaces of the VirtualMachines. There are no
	// wildcards.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces"`

	// Names are the names of the VirtualMachines. A * at the end stands for any
	// characters, also none; * alone stands for every VirtualMachine of the namespaces.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?|([a-z0-9][-a-z0-9.]*)?\*)$`
	Names []string `json:"names"`

	// Subjects are the users, groups and service accounts whose requests the exception
	// applies to; if empty, it applies to all. Stored VirtualMachines do not contain who
	// created them, so the audit does not apply an exception with subjects.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Subjects []Subject `json:"subjects,omitempty"`

	// Reason is why the policies may be violated. Users who may read exceptions, or the
	// reports of the audit, can read it.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`\S`
	Reason string `json:"reason"`

	// ExpiresAt is when the exception ends. It must be later than the creation of the
	// exception, by at most 366 days, also after a change.
	//
	// +required
	ExpiresAt metav1.Time `json:"expiresAt"`
}

// PolicyExceptionStatus is what was last observed of an exception. Two parts of Stencil
// write it, each its own fields, by server-side apply: the audit writes the field audit,
// the status reconciler writes the others.
type PolicyExceptionStatus struct {
	// ObservedGeneration is the generation of the exception that the conditions describe.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Active, whether the exception applies now, and Ready, whether every
	// policy that it names exists.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Audit is the result of the last audit for the exception. It is not set while
	// spec.subjects is.
	//
	// +optional
	Audit *PolicyExceptionAudit `json:"audit,omitempty"`
}

// PolicyExceptionAudit are the VirtualMachines that violate a policy and that the
// exception allows to.
type PolicyExceptionAudit struct {
	// VirtualMachines is the number of VirtualMachines that used the exception at the last
	// audit.
	//
	// +required
	VirtualMachines int32 `json:"virtualMachines"`

	// Uses lists up to 20 of their violations, in the order of namespace, name and policy.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Uses []PolicyExceptionUse `json:"uses,omitempty"`
}

// PolicyExceptionUse is one VirtualMachine that violates a policy by an exception.
type PolicyExceptionUse struct {
	// Namespace is the namespace of the VirtualMachine.
	//
	// +required
	Namespace string `json:"namespace"`

	// Name is the name of the VirtualMachine.
	//
	// +required
	Name string `json:"name"`

	// Policy is the name of the policy that it violates.
	//
	// +required
	Policy string `json:"policy"`
}

// Reasons of the condition Active of a PolicyException.
const (
	// ReasonUnexpired is the reason of an exception that applies now.
	ReasonUnexpired = "Unexpired"

	// ReasonExpired is the reason of an exception that has ended.
	ReasonExpired = "Expired"
)

// Reasons of the condition Ready of a PolicyException.
const (
	// ReasonPoliciesFound is the reason when every policy that the exception names exists.
	ReasonPoliciesFound = "PoliciesFound"

	// ReasonUnknownPolicies is the reason when a policy that the exception names does not
	// exist.
	ReasonUnknownPolicies = "UnknownPolicies"
)

// FieldManagers of the status of a PolicyException. Only the named manager writes the
// fields.
const (
	// FieldManagerExceptionStatus writes all fields except for status.audit.
	FieldManagerExceptionStatus = "stencil-exception-status"

	// FieldManagerExceptionAudit writes status.audit.
	FieldManagerExceptionAudit = "stencil-exception-audit"
)
