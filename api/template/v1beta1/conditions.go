package v1beta1

// Types of the conditions of VirtualMachineTemplate and
// VirtualMachineTemplateRequest.
const (
	// ConditionReady is true on a template that can be processed, and on a
	// request whose template has been created.
	ConditionReady = "Ready"

	// ConditionStencilReady replaces ConditionReady on templates where KubeVirt's own
	// template component serves this API, whose controller writes Ready.
	ConditionStencilReady = "stencil.kubevirt.io/Ready"

	// ConditionCompleted equals ConditionReady on a request. The examples of the published API
	// wait for it.
	ConditionCompleted = "Completed"

	// ConditionProgressing is true on a request that is in progress. False ends the
	// request, successful or not.
	ConditionProgressing = "Progressing"

	// ConditionPolicyCompliant is true on a template if no VirtualMachinePolicy denies
	// its VirtualMachine, rendered with defaults. It is set on templates to which at
	// least one policy applies.
	ConditionPolicyCompliant = "PolicyCompliant"

	// ConditionPolicyCompliantForAllValues is true on a template if no VirtualMachinePolicy
	// denies a VirtualMachine that approvals allow, with any values of its parameters. It is
	// set on templates with parameters that have several listed or bounded values, and to
	// which at least one policy with enforcement Deny applies.
	ConditionPolicyCompliantForAllValues = "PolicyCompliantForAllValues"

	// ConditionComplete is true on a request if the template contains all parts of the
	// VirtualMachine. Its message names the missing parts.
	ConditionComplete = "Complete"

	// ConditionSealed is false on an import, an export or a request, and on their
	// template, if a disk contains what identifies one VM: a machine ID, SSH keys, state
	// of cloud-init, leases. It is Unknown if a part of a disk was not examined. Its
	// message has paths, and never the content of files.
	ConditionSealed = "Sealed"

	// ConditionSecretsFound is true on a request if the cloud-init data of the
	// VirtualMachine contains passwords or private keys. Its message names their fields,
	// and never their values.
	ConditionSecretsFound = "SecretsFound"

	// ConditionIdentityFound is true on a request if the template contains something
	// that identifies the captured VirtualMachine, such as a static address in
	// network data. Its message also names what was left out.
	ConditionIdentityFound = "IdentityFound"
)

// Reasons of those conditions.
const (
	ReasonReconciled           = "Reconciled"
	ReasonReconciling          = "Reconciling"
	ReasonInvalidConfiguration = "InvalidConfiguration"
	ReasonFailed               = "Failed"
	ReasonWaiting              = "Waiting"
)

// Reasons of the condition Sealed.
const (
	// ReasonSealed is the reason of disks on which nothing was found.
	ReasonSealed = "Sealed"

	// ReasonNotSealed is the reason of disks on which something was found.
	ReasonNotSealed = "NotSealed"

	// ReasonNotExamined is the reason of disks of which a part was not examined.
	ReasonNotExamined = "NotExamined"

	// ReasonAcknowledged replaces NotSealed and NotExamined on an object with the
	// annotation template.kubevirt.io/seal-acknowledged.
	ReasonAcknowledged = "Acknowledged"

	// ReasonExamining is the reason of a request whose disks are being examined.
	ReasonExamining = "Examining"

	// ReasonExamined is the reason of a request whose disks were examined, and whose
	// copies of them are being deleted.
	ReasonExamined = "Examined"
)

// Reasons of the conditions PolicyCompliant and PolicyCompliantForAllValues.
const (
	// ReasonCompliant is the reason of a template that violates no policy.
	ReasonCompliant = "Compliant"

	// ReasonPolicyWarnings is the reason of a template that violates only policies with
	// enforcement Warn or Audit.
	ReasonPolicyWarnings = "PolicyWarnings"

	// ReasonPolicyViolations is the reason of a template with VirtualMachines that a
	// policy denies.
	ReasonPolicyViolations = "PolicyViolations"

	// ReasonParametersRequired is the reason of a template that cannot be evaluated
	// because it has required parameters with neither a default nor a list of values.
	ReasonParametersRequired = "ParametersRequired"

	// ReasonNotRendered is the reason of a template that does not compile, or that
	// cannot be rendered with its defaults.
	ReasonNotRendered = "NotRendered"

	// ReasonNotEvaluated is the reason of a template for which a policy could not be
	// evaluated.
	ReasonNotEvaluated = "NotEvaluated"

	// ReasonNotDecided is the reason of a template for which not all values were decided,
	// because there are too many, or because a policy depends on parameters whose values
	// are not listed.
	ReasonNotDecided = "NotDecided"
)

// Reasons of the condition Progressing of a request while it is true, and of its
// condition Ready meanwhile: the current step.
const (
	// ReasonStarting is the reason of a request for which nothing has been created yet.
	ReasonStarting = "Starting"

	// ReasonWaitingForVirtualMachine is the reason while the VirtualMachine does not exist.
	ReasonWaitingForVirtualMachine = "WaitingForMachine"

	// ReasonWaitingForSnapshot is the reason while KubeVirt takes the snapshot.
	ReasonWaitingForSnapshot = "WaitingForSnapshot"

	// ReasonWaitingForDataVolumes is the reason while CDI copies the disks.
	ReasonWaitingForDataVolumes = "WaitingForDataVolumes"

	// ReasonWaitingForAPI is the reason while the API server does not serve a kind that
	// the request needs, because KubeVirt or CDI is not installed.
	ReasonWaitingForAPI = "WaitingForAPI"

	// ReasonRetrying is the reason while a step fails with an error that may be
	// temporary.
	ReasonRetrying = "Retrying"

	// ReasonFinishing is the reason when only the handover to the template remains.
	ReasonFinishing = "Finishing"
)

// Reasons of the condition Ready of a request that has ended and is not ready.
const (
	// ReasonVirtualMachineNotFound is the reason when the VirtualMachine is deleted before
	// its snapshot is taken.
	ReasonVirtualMachineNotFound = "MachineNotFound"

	// ReasonTemplateExists is the reason when a template with that name exists that the
	// request did not create.
	ReasonTemplateExists = "TemplateExists"

	// ReasonTemplateDeleted is the reason when the template was deleted before the
	// request was finished.
	ReasonTemplateDeleted = "TemplateDeleted"

	// ReasonSnapshotFailed is the reason when KubeVirt could not take the snapshot.
	ReasonSnapshotFailed = "SnapshotFailed"

	// ReasonSnapshotLost is the reason when the snapshot, or a part of it, was deleted while the
	// request still needed it.
	ReasonSnapshotLost = "SnapshotLost"

	// ReasonDataVolumeFailed is the reason when CDI could not copy a disk, or its
	// copy was deleted.
	ReasonDataVolumeFailed = "DataVolumeFailed"

	// ReasonExpansionFailed is the reason when KubeVirt could not expand the instance
	// type and the preference.
	ReasonExpansionFailed = "ExpansionFailed"

	// ReasonNameTaken is the reason when another object has a name that is derived from
	// the UID of the request.
	ReasonNameTaken = "NameTaken"

	// ReasonCaptureRefused is the reason when the API server denies an object that the
	// request has to create, or no template can be made of the VirtualMachine.
	ReasonCaptureRefused = "CaptureRefused"

	// ReasonNotPermitted is the reason when the user who created the request may not do
	// any more what it requires.
	ReasonNotPermitted = "NotPermitted"

	// ReasonTimeout is the reason when the timeout of the request has passed.
	ReasonTimeout = "Timeout"

	// ReasonUninstalled is the reason when Stencil was uninstalled before the request
	// was finished.
	ReasonUninstalled = "Uninstalled"

	// ReasonUnreachable is the reason when the template was created and refers to
	// objects that its VirtualMachines cannot use, or must not share.
	ReasonUnreachable = "Unreachable"
)

// Reasons of the conditions Complete, SecretsFound and IdentityFound of a request.
const (
	// ReasonEverythingCaptured is the reason of Complete when it is true.
	ReasonEverythingCaptured = "EverythingCaptured"

	// ReasonLeftBehind is the reason of Complete when the template lacks parts of the
	// VirtualMachine that are optional, or that can be added to VirtualMachines of the
	// template.
	ReasonLeftBehind = "LeftBehind"

	// ReasonNoSecrets is the reason of SecretsFound when it is false.
	ReasonNoSecrets = "NoSecrets"

	// ReasonSecretsKept is the reason of SecretsFound when the template contains at
	// least one of them.
	ReasonSecretsKept = "SecretsKept"

	// ReasonNotSearched is the reason of SecretsFound when it is Unknown, because some
	// of the data is in a format that cannot be searched.
	ReasonNotSearched = "NotSearched"

	// ReasonSecretsParameterized is the reason of SecretsFound when all of them
	// were replaced by parameters.
	ReasonSecretsParameterized = "SecretsParameterized"

	// ReasonIdentityKept is the reason of IdentityFound when it is true.
	ReasonIdentityKept = "IdentityKept"

	// ReasonNoIdentity is the reason of IdentityFound when it is false.
	ReasonNoIdentity = "NoIdentity"
)

// MessageReady is the message of a template's Ready condition while it is true.
const MessageReady = "VirtualMachineTemplate is ready to be processed"

const (
	// FinalizerSnapshotCleanup prevents the deletion of a request until its snapshot is
	// deleted.
	FinalizerSnapshotCleanup = "template.kubevirt.io/SnapshotCleanup"

	// LabelRequestUID is on all objects that a request creates and holds the UID of
	// that request.
	LabelRequestUID = "template.kubevirt.io/RequestUID"

	// LabelTransferUID is on all objects that an import or an export creates and holds
	// the UID of that import or export.
	LabelTransferUID = "template.kubevirt.io/transfer"
)
