package v1alpha1

// Types of the conditions of a VirtualMachinePolicy.
const (
	// ConditionCompiled is true when the policy in spec compiles and its parameters
	// satisfy their schema.
	ConditionCompiled = "Compiled"

	// ConditionTested is true when all tests in spec pass.
	ConditionTested = "Tested"

	// ConditionActive is true when the policy in spec is in force.
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
	// ReasonTestsPassed is the reason of a policy whose tests pass.
	ReasonTestsPassed = "TestsPassed"

	// ReasonNoTests is the reason of a policy that has no tests; nothing is wrong with
	// it, as far as anybody can tell.
	ReasonNoTests = "NoTests"

	// ReasonTestsFailed is the reason of a policy of whose tests some fail.
	ReasonTestsFailed = "TestsFailed"

	// ReasonNotCompiled is the reason of a policy whose tests cannot run because it does
	// not compile.
	ReasonNotCompiled = "NotCompiled"
)

// Reasons of the condition Active.
const (
	// ReasonActive is the reason of a policy that is in force as it is written.
	ReasonActive = "Active"

	// ReasonNotRouted is the reason of a policy that could be in force, while the webhook
	// configuration that sends requests to be judged by it is not there yet, or not any
	// more.
	ReasonNotRouted = "NotRouted"

	// ReasonLastGoodVersion is the reason of a policy that is broken, while an earlier
	// version of it is in force.
	ReasonLastGoodVersion = "LastGoodVersion"

	// ReasonBroken is the reason of a policy that cannot be evaluated in any version:
	// failureMode decides about what it applies to.
	ReasonBroken = "Broken"

	// ReasonNeverActive is the reason of a policy of which no version has been in force
	// yet, because its tests fail: nothing is judged by it.
	ReasonNeverActive = "NeverActive"

	// ReasonQuarantined is the reason of a policy that took too long again and again:
	// failureMode decides about what it applies to, until it is tried again.
	ReasonQuarantined = "Quarantined"
)

// FieldManagers of the status of a VirtualMachinePolicy. Nobody but the one named
// writes the fields.
const (
	// FieldManagerPolicyStatus writes what the other managers do not.
	FieldManagerPolicyStatus = "stencil-policy-status"

	// FieldManagerPolicyAudit writes status.audit.
	FieldManagerPolicyAudit = "stencil-policy-audit"

	// FieldManagerPolicyTemplates writes status.templates.
	FieldManagerPolicyTemplates = "stencil-policy-templates"

	// FieldManagerPolicyReplica, with the name of a pod behind it, writes the entry of
	// that pod in status.replicas.
	FieldManagerPolicyReplica = "stencil-policy-replica-"
)
