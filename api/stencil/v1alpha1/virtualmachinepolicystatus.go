package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// VirtualMachinePolicyStatus is what was last observed of a policy. Several parts of
// Stencil write it, each its own fields, by server-side apply: each replica writes
// its entry of replicas, the audit writes the field audit, the check of templates
// writes the field templates, and the leader's status reconciler writes all other
// fields.
type VirtualMachinePolicyStatus struct {
	// ObservedGeneration is the generation of the policy that the conditions, errors and
	// failed tests describe.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Compiled, whether the module compiles; Tested, whether its tests
	// pass; and Active, whether the current spec is active.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Errors are the reasons why the policy does not compile.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Errors []PolicyError `json:"errors,omitempty"`

	// FailedTests are the tests that do not produce the expected messages.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	FailedTests []FailedPolicyTest `json:"failedTests,omitempty"`

	// Title is the title in the METADATA of the active module.
	//
	// +optional
	Title string `json:"title,omitempty"`

	// Severity is the severity in the METADATA of the active module: low, medium, high
	// or critical.
	//
	// +optional
	Severity string `json:"severity,omitempty"`

	// ActiveGeneration is the generation of the policy that is active; 0 when none is.
	//
	// +optional
	ActiveGeneration int64 `json:"activeGeneration,omitempty"`

	// ActiveDigest is the digest of the active module, parameters and schema.
	//
	// +optional
	ActiveDigest string `json:"activeDigest,omitempty"`

	// LastGood stores the version that is active while the version in spec is broken,
	// so that it is available after a restart. It is not set while spec itself is
	// active.
	//
	// +optional
	LastGood *PolicyVersion `json:"lastGood,omitempty"`

	// Evaluations is the sum of what the replicas have counted for the active version.
	//
	// +optional
	Evaluations *PolicyEvaluations `json:"evaluations,omitempty"`

	// Replicas are the counts of each replica of the manager for its active version,
	// since it first evaluated that version. An entry that was not updated for an hour
	// is removed.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Replicas []PolicyReplica `json:"replicas,omitempty"`

	// Audit is the result of the last audit of the stored VirtualMachines.
	//
	// +optional
	Audit *PolicyAudit `json:"audit,omitempty"`

	// Templates is the result of the check of the VirtualMachineTemplates.
	//
	// +optional
	Templates *PolicyTemplates `json:"templates,omitempty"`
}

// PolicyError is one error of the compilation of a policy.
type PolicyError struct {
	// Row is the line of the module, starting at 1; 0 if the error is not in the
	// module.
	//
	// +optional
	Row int32 `json:"row,omitempty"`

	// Column is the position in the line, starting at 1.
	//
	// +optional
	Column int32 `json:"column,omitempty"`

	// Line is the text of that line.
	//
	// +optional
	Line string `json:"line,omitempty"`

	// Field is the invalid field, if the error is not in the module.
	//
	// +optional
	Field string `json:"field,omitempty"`

	// Message describes the error.
	//
	// +required
	Message string `json:"message"`
}

// FailedPolicyTest is a test that does not produce the expected messages.
type FailedPolicyTest struct {
	// Name is the name of the test.
	//
	// +required
	Name string `json:"name"`

	// Message describes the missing and the unexpected messages, or why the test could
	// not be run.
	//
	// +required
	Message string `json:"message"`
}

// PolicyVersion is a version of a policy that was active before spec was changed.
type PolicyVersion struct {
	// Generation is the generation of that version.
	//
	// +required
	Generation int64 `json:"generation"`

	// Spec is the spec of that version, without tests.
	//
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec *runtime.RawExtension `json:"spec"`
}

// PolicyEvaluations are counts and durations of evaluations of the active version.
type PolicyEvaluations struct {
	// Count is the number of evaluations.
	//
	// +optional
	Count int64 `json:"count,omitempty"`

	// P50Microseconds is the median duration of the evaluations, in microseconds; for
	// several replicas, that of the slowest.
	//
	// +optional
	P50Microseconds int64 `json:"p50Microseconds,omitempty"`

	// P99Microseconds is the 99th percentile of the durations of the evaluations, in
	// microseconds; for several replicas, that of the slowest.
	//
	// +optional
	P99Microseconds int64 `json:"p99Microseconds,omitempty"`

	// Timeouts is the number of evaluations that exceeded a timeout.
	//
	// +optional
	Timeouts int64 `json:"timeouts,omitempty"`

	// Errors is the number of evaluations that failed for another reason.
	//
	// +optional
	Errors int64 `json:"errors,omitempty"`
}

// PolicyReplica is what one replica of the manager reports about a policy.
type PolicyReplica struct {
	// Name is the name of the replica's pod.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	PolicyEvaluations `json:",inline"`

	// ActiveDigest is the digest of the version that is active in this replica.
	//
	// +optional
	ActiveDigest string `json:"activeDigest,omitempty"`

	// Quarantined is true while the replica does not evaluate the policy because it timed
	// out repeatedly; failureMode decides meanwhile.
	//
	// +optional
	Quarantined bool `json:"quarantined,omitempty"`

	// LastUpdateTime is the time at which the replica wrote this entry.
	//
	// +required
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`
}

// PolicyAudit is the result of an audit of the stored VirtualMachines.
type PolicyAudit struct {
	// Generation is the generation of the policy that was active at the audit.
	//
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// Conforming is the number of VirtualMachines that the policy applies to and that
	// do not violate it. Findings of the rule warn are no violations.
	//
	// +optional
	Conforming *int32 `json:"conforming,omitempty"`

	// Violating is the number of VirtualMachines that violate the policy.
	//
	// +optional
	Violating *int32 `json:"violating,omitempty"`

	// Unknown is the number of VirtualMachines that the policy would deny now, while its
	// module reads input.request.time: they may have been created at a time at which it
	// allowed them. They are not violating.
	//
	// +optional
	Unknown int32 `json:"unknown,omitempty"`

	// Excepted is the number of VirtualMachines that violate the policy and that a
	// PolicyException allows to. They are not violating.
	//
	// +optional
	Excepted int32 `json:"excepted,omitempty"`

	// Violations lists up to 20 of the violating VirtualMachines.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Violations []Violation `json:"violations,omitempty"`

	// LastTime is the time of the last audit with a result other than that of the audit
	// before it, or of the first audit.
	//
	// +optional
	LastTime *metav1.Time `json:"lastTime,omitempty"`
}

// PolicyTemplates is the result of a check of the VirtualMachineTemplates: each is
// rendered with its defaults and evaluated.
type PolicyTemplates struct {
	// Checked is the number of templates that the policy was evaluated for.
	//
	// +optional
	Checked *int32 `json:"checked,omitempty"`

	// Noncompliant is the number of templates with VirtualMachines that violate the
	// policy.
	//
	// +optional
	Noncompliant *int32 `json:"noncompliant,omitempty"`

	// First lists up to 20 of the noncompliant templates.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	First []NoncompliantTemplate `json:"first,omitempty"`
}

// NoncompliantTemplate is a template that violates a policy.
type NoncompliantTemplate struct {
	// Namespace is the namespace of the template.
	//
	// +required
	Namespace string `json:"namespace"`

	// Name is the name of the template.
	//
	// +required
	Name string `json:"name"`

	// Cause describes the violation.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Cause string `json:"cause,omitempty"`
}
