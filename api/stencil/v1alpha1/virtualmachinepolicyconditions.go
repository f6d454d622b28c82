package v1alpha1

// Types of the conditions of a VirtualMachinePolicy.
const (
	// ConditionCompiled is true when the policy in spec compiles and its parameters
	// satisfy their schema.
	ConditionCompiled = "Compiled"

	// ConditionTested is true when all tests in spec pass.
	ConditionTested = "Tested"

	// ConditionActive is true when the policy in spec is active.
	ConditionActive = "Active"
)

// Reasons of the condition Compiled.
const (
	// ReasonCompiled is the reason of a policy that compiles.
	ReasonCompiled = "Compiled"

	// ReasonCompileError is the reason of a policy that does not compile.
	ReasonCompileError = "CompileError"
)

// Reasons of the condition Tested.
const (
	// ReasonTestsPassed is the reason when all tests of the policy pass.
	ReasonTestsPassed = "TestsPassed"

	// ReasonNoTests is the reason of a policy without tests.
	ReasonNoTests = "NoTests"

	// ReasonTestsFailed is the reason of a policy with failed tests.
	ReasonTestsFailed = "TestsFailed"

	// ReasonNotCompiled is the reason when the tests cannot run because the policy does
	// not compile.
	ReasonNotCompiled = "NotCompiled"
)

// Reasons of the condition Active.
const (
	// ReasonActive is the reason of a policy that is active with its current spec.
	ReasonActive = "Active"

	// ReasonNotRouted is the reason of a policy that could be active, while the webhook
	// configuration that sends the requests to evaluate does not exist yet, or was
	// deleted.
	ReasonNotRouted = "NotRouted"

	// ReasonLastGoodVersion is the reason of a policy that is broken, while an earlier
	// version of it is active.
	ReasonLastGoodVersion = "LastGoodVersion"

	// ReasonBroken is the reason of a policy that cannot be evaluated in any version:
	// failureMode decides on the requests that it applies to.
	ReasonBroken = "Broken"

	// ReasonNeverActive is the reason of a policy of which no version has been active
	// yet, because its tests fail: it is not evaluated for any request.
	ReasonNeverActive = "NeverActive"

	// ReasonQuarantined is the reason of a policy that timed out repeatedly:
	// failureMode decides on the requests that it applies to, until it is tried again.
	ReasonQuarantined = "Quarantined"

	// ReasonDataMissing is the reason of a policy that reads a value of the cluster that
	// does not exist: failureMode decides on the requests that it applies to, until it does.
	ReasonDataMissing = "DataMissing"
)

// FieldManagers of the status of a VirtualMachinePolicy. Only the named manager writes
// the fields.
const (
	// FieldManagerPolicyStatus writes all fields that the other managers do not write.
	FieldManagerPolicyStatus = "stencil-policy-status"

	// FieldManagerPolicyAudit writes status.audit.
	FieldManagerPolicyAudit = "stencil-policy-audit"

	// FieldManagerPolicyTemplates writes status.templates.
	FieldManagerPolicyTemplates = "stencil-policy-templates"

	// FieldManagerPolicyReplica, followed by the name of a pod, writes the entry of
	// that pod in status.replicas.
	FieldManagerPolicyReplica = "stencil-policy-replica-"
)
