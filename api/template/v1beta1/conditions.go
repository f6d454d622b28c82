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

	// ConditionComplete says, on a request, whether everything of the
	// VirtualMachine has come along into the template. Its message names what has not.
	ConditionComplete = "Complete"

	// ConditionSecretsFound says, on a request, whether passwords or private keys
	// stand in the cloud-init data of the VirtualMachine. Its message names their fields,
	// and never what is in them.
	ConditionSecretsFound = "SecretsFound"
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

// Reasons of the condition Progressing of a request while it is true, and of its
// condition Ready meanwhile: what is done, or waited for.
const (
	// ReasonStarting is the reason of a request that nothing has been made for yet.
	ReasonStarting = "Starting"

	// ReasonWaitingForSnapshot is the reason while KubeVirt takes the snapshot.
	ReasonWaitingForSnapshot = "WaitingForSnapshot"

	// ReasonWaitingForDataVolumes is the reason while CDI copies the disks.
	ReasonWaitingForDataVolumes = "WaitingForDataVolumes"

	// ReasonWaitingForAPI is the reason while the API server does not know a kind
	// that the request needs, because KubeVirt's or CDI's is not installed.
	ReasonWaitingForAPI = "WaitingForAPI"

	// ReasonRetrying is the reason while something fails that may pass.
	ReasonRetrying = "Retrying"

	// ReasonFinishing is the reason when all that is left is to hand over.
	ReasonFinishing = "Finishing"
)

// Reasons of the condition Ready of a request that has ended and is not ready.
const (
	// ReasonMachineNotFound is the reason when the VirtualMachine is gone.
	ReasonMachineNotFound = "MachineNotFound"

	// ReasonTemplateExists is the reason when there is a template of that name
	// which the request has not made.
	ReasonTemplateExists = "TemplateExists"

	// ReasonTemplateDeleted is the reason when the template was deleted before the
	// request was finished.
	ReasonTemplateDeleted = "TemplateDeleted"

	// ReasonSnapshotFailed is the reason when KubeVirt could not take the snapshot.
	ReasonSnapshotFailed = "SnapshotFailed"

	// ReasonSnapshotLost is the reason when the snapshot, or a part of it, was deleted before it had
	// served.
	ReasonSnapshotLost = "SnapshotLost"

	// ReasonDataVolumeFailed is the reason when CDI could not copy a disk, or its
	// copy was deleted.
	ReasonDataVolumeFailed = "DataVolumeFailed"

	// ReasonExpansionFailed is the reason when KubeVirt could not say what the
	// instance type and the preference stand for.
	ReasonExpansionFailed = "ExpansionFailed"

	// ReasonNameTaken is the reason when something else has a name that is derived
	// from the UID of the request.
	ReasonNameTaken = "NameTaken"

	// ReasonCaptureRefused is the reason when the API server refuses what would have
	// to be made, or the VirtualMachine cannot be made a template of.
	ReasonCaptureRefused = "CaptureRefused"

	// ReasonTimeout is the reason when the time was over.
	ReasonTimeout = "Timeout"

	// ReasonUnreachable is the reason when the template was made and refers to
	// something that its VirtualMachines cannot reach, or must not share.
	ReasonUnreachable = "Unreachable"
)

// Reasons of the conditions Complete and SecretsFound of a request.
const (
	// ReasonEverythingCaptured is the reason of Complete when it is true.
	ReasonEverythingCaptured = "EverythingCaptured"

	// ReasonLeftBehind is the reason of Complete when something has not come along
	// that VirtualMachines of the template can do without, or can be given.
	ReasonLeftBehind = "LeftBehind"

	// ReasonNoSecrets is the reason of SecretsFound when it is false.
	ReasonNoSecrets = "NoSecrets"

	// ReasonSecretsKept is the reason of SecretsFound when at least one of them
	// stands in the template.
	ReasonSecretsKept = "SecretsKept"

	// ReasonNotSearched is the reason of SecretsFound when it is unknown, because
	// some of the data is of no format that can be searched.
	ReasonNotSearched = "NotSearched"

	// ReasonSecretsParameterized is the reason of SecretsFound when all of them
	// were replaced by parameters.
	ReasonSecretsParameterized = "SecretsParameterized"
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
