package v1beta1

// TransferPhase is how far an import or an export is.
type TransferPhase string

const (
	// TransferPending has not begun.
	TransferPending TransferPhase = "Pending"

	// TransferUploading waits until the user has uploaded the package.
	TransferUploading TransferPhase = "Uploading"

	// TransferInspecting reads the description of the package.
	TransferInspecting TransferPhase = "Inspecting"

	// TransferWaiting waits for a decision of a user, which the message of the condition
	// Progressing names.
	TransferWaiting TransferPhase = "Waiting"

	// TransferPreparing waits for volumes.
	TransferPreparing TransferPhase = "Preparing"

	// TransferTransferring reads or writes disks.
	TransferTransferring TransferPhase = "Transferring"

	// TransferPublishing creates the template.
	TransferPublishing TransferPhase = "Publishing"

	// TransferSucceeded is the last phase of a successful import, and of an export to a
	// registry.
	TransferSucceeded TransferPhase = "Succeeded"

	// TransferReady is an export that can be downloaded.
	TransferReady TransferPhase = "Ready"

	// TransferExpired is an export that was deleted after its ttl.
	TransferExpired TransferPhase = "Expired"

	// TransferFailed is the last phase of a transfer that failed.
	TransferFailed TransferPhase = "Failed"
)

// TransferDisk is the progress of a disk.
type TransferDisk struct {
	// Name of the PersistentVolumeClaim.
	//
	// +required
	Name string `json:"name"`

	// Bytes of the disk's file that were transferred, of Total.
	//
	// +optional
	Bytes int64 `json:"bytes,omitempty"`

	// +optional
	Total int64 `json:"total,omitempty"`

	// Percent of Total.
	//
	// +optional
	Percent int32 `json:"percent,omitempty"`

	// Digest of the disk's file in the package.
	//
	// +optional
	Digest string `json:"digest,omitempty"`
}
