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
)

// Reasons of those conditions.
const (
	ReasonReconciled           = "Reconciled"
	ReasonReconciling          = "Reconciling"
	ReasonInvalidConfiguration = "InvalidConfiguration"
	ReasonFailed               = "Failed"
	ReasonWaiting              = "Waiting"
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
