package v1beta1

// Types of the conditions of VirtualMachineTemplate and
// VirtualMachineTemplateRequest.
const (
	// ConditionReady is true on a template that can be processed, and on a
	// request whose template has been created.
	ConditionReady = "Ready"

	// ConditionProgressing is true on a request that is being worked on. False
	// ends the request, whatever its outcome.
	ConditionProgressing = "Progressing"

	// ConditionPolicyCompliant says what the VirtualMachinePolicies have against the
	// VirtualMachine that a template makes of its defaults. It is on templates that any
	// policy applies to.
	ConditionPolicyCompliant = "PolicyCompliant"
)

// Reasons of those conditions.
const (
	ReasonReconciled           = "Reconciled"
	ReasonReconciling          = "Reconciling"
	ReasonInvalidConfiguration = "InvalidConfiguration"
	ReasonFailed               = "Failed"
	ReasonWaiting              = "Waiting"
)

// Reasons of the condition PolicyCompliant.
const (
	// ReasonCompliant is the reason of a template that no policy objects to.
	ReasonCompliant = "Compliant"

	// ReasonPolicyWarnings is the reason of a template that no policy refuses, and to
	// which one that only warns or records objects.
	ReasonPolicyWarnings = "PolicyWarnings"

	// ReasonPolicyViolations is the reason of a template whose VirtualMachines a policy
	// refuses.
	ReasonPolicyViolations = "PolicyViolations"

	// ReasonParametersRequired is the reason of a template that cannot be judged
	// because nobody knows what values its parameters might get.
	ReasonParametersRequired = "ParametersRequired"

	// ReasonNotRendered is the reason of a template that does not compile, or whose
	// defaults make no VirtualMachine.
	ReasonNotRendered = "NotRendered"

	// ReasonNotEvaluated is the reason of a template about which a policy could not
	// be asked.
	ReasonNotEvaluated = "NotEvaluated"
)

// MessageReady is the message of a template's Ready condition while it is true.
const MessageReady = "VirtualMachineTemplate is ready to be processed"

const (
	// FinalizerSnapshotCleanup keeps a request until its snapshot is deleted.
	FinalizerSnapshotCleanup = "template.kubevirt.io/SnapshotCleanup"

	// LabelRequestUID is on everything that a request creates and holds the
	// UID of that request.
	LabelRequestUID = "template.kubevirt.io/RequestUID"
)
