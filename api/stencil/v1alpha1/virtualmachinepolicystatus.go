package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// VirtualMachinePolicyStatus is what was last observed of a policy. Several parts of
// Stencil write it, each its own fields, by server-side apply: the leader's status
// reconciler what is not named below, each replica its entry of replicas, the audit
// the field audit, and the check of templates the field templates.
type VirtualMachinePolicyStatus struct {
	// ObservedGeneration is the generation of the policy that the conditions, errors and
	// failed tests are about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Compiled, whether the module compiles; Tested, whether its tests
	// pass; and Active, whether it is in force as it is written now.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Errors are why the policy does not compile.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Errors []PolicyError `json:"errors,omitempty"`

	// FailedTests are the tests that do not say what they should.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	FailedTests []FailedPolicyTest `json:"failedTests,omitempty"`

	// Title is what the active module calls itself in its METADATA.
	//
	// +optional
	Title string `json:"title,omitempty"`

	// Severity is the active module's own, from its METADATA: low, medium, high or
	// critical.
	//
	// +optional
	Severity string `json:"severity,omitempty"`

	// ActiveGeneration is the generation of the policy that is in force; 0 when none is.
	//
	// +optional
	ActiveGeneration int64 `json:"activeGeneration,omitempty"`

	// ActiveDigest is the digest of the module, parameters and schema that are in force.
	//
	// +optional
	ActiveDigest string `json:"activeDigest,omitempty"`

	// LastGood keeps the version that is in force while the one in spec is broken, so
	// that a restart finds it again. There is none while spec itself is in force.
	//
	// +optional
	LastGood *PolicyVersion `json:"lastGood,omitempty"`

	// Evaluations sums up what the replicas have counted of the version that is in force.
	//
	// +optional
	Evaluations *PolicyEvaluations `json:"evaluations,omitempty"`

	// Replicas are what each replica of the manager has counted since it runs. One that
	// has not been heard of for an hour is left out.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Replicas []PolicyReplica `json:"replicas,omitempty"`

	// Audit is what the last audit of the stored VirtualMachines found.
	//
	// +optional
	Audit *PolicyAudit `json:"audit,omitempty"`

	// Templates is what the check of the VirtualMachineTemplates found.
	//
	// +optional
	Templates *PolicyTemplates `json:"templates,omitempty"`
}

// PolicyError is one reason why a policy does not compile.
type PolicyError struct {
	// Row is the line of the module, from 1; 0 when the error is not about the module.
	//
	// +optional
	Row int32 `json:"row,omitempty"`

	// Column is where in the line, from 1.
	//
	// +optional
	Column int32 `json:"column,omitempty"`

	// Line is the text of that line.
	//
	// +optional
	Line string `json:"line,omitempty"`

	// Field is the field that the error is about when it is not the module.
	//
	// +optional
	Field string `json:"field,omitempty"`

	// Message tells what is wrong.
	//
	// +required
	Message string `json:"message"`
}

// FailedPolicyTest is a test that does not say what it should.
type FailedPolicyTest struct {
	// Name is the name of the test.
	//
	// +required
	Name string `json:"name"`

	// Message tells what it says, and what it should.
	//
	// +required
	Message string `json:"message"`
}

// PolicyVersion is a version of a policy that was in force before spec was changed.
type PolicyVersion struct {
	// Generation is the generation of the policy that it was.
	//
	// +required
	Generation int64 `json:"generation"`

	// Spec is what spec was, without tests.
	//
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec *runtime.RawExtension `json:"spec"`
}

// PolicyEvaluations are counts and durations of evaluations of the version that is in
// force.
type PolicyEvaluations struct {
	// Count is how many evaluations there were.
	//
	// +optional
	Count int64 `json:"count,omitempty"`

	// P50Microseconds is what half of the latest evaluations took at most; of several
	// replicas, the slowest one's.
	//
	// +optional
	P50Microseconds int64 `json:"p50Microseconds,omitempty"`

	// P99Microseconds is what 99 of 100 of the latest evaluations took at most; of
	// several replicas, the slowest one's.
	//
	// +optional
	P99Microseconds int64 `json:"p99Microseconds,omitempty"`

	// Timeouts is how many evaluations took longer than they may.
	//
	// +optional
	Timeouts int64 `json:"timeouts,omitempty"`

	// Errors is how many evaluations failed otherwise.
	//
	// +optional
	Errors int64 `json:"errors,omitempty"`
}

// PolicyReplica is what one replica of the manager says of a policy.
type PolicyReplica struct {
	// Name is the name of the replica's pod.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	PolicyEvaluations `json:",inline"`

	// ActiveDigest is the digest of what is in force there.
	//
	// +optional
	ActiveDigest string `json:"activeDigest,omitempty"`

	// Quarantined says that the replica does not evaluate the policy for a while, because
	// it took too long again and again; failureMode decides meanwhile.
	//
	// +optional
	Quarantined bool `json:"quarantined,omitempty"`

	// LastUpdateTime is when the replica wrote this.
	//
	// +required
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`
}

// PolicyAudit is what an audit of the stored VirtualMachines found.
type PolicyAudit struct {
	// Generation is the generation of the policy that was in force at the audit.
	//
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// Conforming is how many of the VirtualMachines that the policy applies to it does
	// not object to.
	//
	// +optional
	Conforming *int32 `json:"conforming,omitempty"`

	// Violating is how many it objects to.
	//
	// +optional
	Violating *int32 `json:"violating,omitempty"`

	// Violations are up to 20 of those that it objects to.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Violations []Violation `json:"violations,omitempty"`

	// LastTime is when the VirtualMachines were last counted.
	//
	// +optional
	LastTime *metav1.Time `json:"lastTime,omitempty"`
}

// PolicyTemplates is what a check of the VirtualMachineTemplates found: each is
// rendered with its defaults and judged.
type PolicyTemplates struct {
	// Checked is how many templates the policy applies to.
	//
	// +optional
	Checked *int32 `json:"checked,omitempty"`

	// Noncompliant is how many of them make VirtualMachines that it objects to.
	//
	// +optional
	Noncompliant *int32 `json:"noncompliant,omitempty"`

	// First are up to 20 of these.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	First []NoncompliantTemplate `json:"first,omitempty"`
}

// NoncompliantTemplate is a template that a policy objects to.
type NoncompliantTemplate struct {
	// Namespace is the namespace of the template.
	//
	// +required
	Namespace string `json:"namespace"`

	// Name is the name of the template.
	//
	// +required
	Name string `json:"name"`

	// Cause tells what the policy objects to.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Cause string `json:"cause,omitempty"`
}
