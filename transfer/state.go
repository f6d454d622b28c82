package transfer

import (
	"encoding/json"

	"github.com/vmstencil/stencil/ovf/conversion"
)

// MaxStateBytes bounds a State in JSON.
const MaxStateBytes = 3 << 20

// Phase is how far a mover is.
type Phase string

// The phases.
const (
	Running   Phase = "Running"
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed"
)

// State is what a mover reports.
type State struct {
	Phase Phase `json:"phase"`
	// Failure is set in the phase Failed.
	Failure *Failure `json:"failure,omitempty"`
	// Plan is the result of the stage Inspect.
	Plan *Plan `json:"plan,omitempty"`
	// Disks are in the order of the task.
	Disks []Progress `json:"disks,omitempty"`
	// Warnings are sentences for users.
	Warnings []string `json:"warnings,omitempty"`
	// Seal is about the disks that an import has written, or an export read.
	Seal *Seal `json:"seal,omitempty"`
	// Digest (sha256:HEX) and Size are those of the exported package.
	Digest string `json:"digest,omitempty"`
	Size   int64  `json:"size,omitempty"`
	// Received are the bytes of an uploaded package that have arrived.
	Received int64 `json:"received,omitempty"`
	// Image is the exported package in the registry: REGISTRY/REPOSITORY@DIGEST.
	Image string `json:"image,omitempty"`
}

// Received is the response to a GET of UploadPath.
type Received struct {
	// Received is how many bytes of the package have arrived.
	Received int64 `json:"received"`
}

// Failure is why a mover failed. Message is for users: it has no credentials and no content of the source.
type Failure struct {
	// Reason is one of the Reason constants.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Retry is true if the same task may succeed later.
	Retry bool `json:"retry,omitempty"`
}

// Plan is what an import would make of a package.
type Plan struct {
	// Format of the package: OVA, OVF or OCI.
	Format string `json:"format"`
	// Description is the digest of what the plan is made of: sha256:HEX. It is that of the descriptor, of the descriptor and the template of the package
	// that follows it, or of the manifest of an artifact.
	Description string `json:"description"`
	// Revision identifies the content of an HTTP source: its ETag, or when it was modified. It is empty if the server reports neither.
	Revision string `json:"revision,omitempty"`
	// Size of the package in bytes; -1 if the source does not report it.
	Size int64 `json:"size"`
	// Verified is by which digests the content can be verified: SHA-256, SHA-1, or nothing if the package has no manifest.
	Verified string `json:"verified,omitempty"`
	// Template is the VirtualMachineTemplate, as JSON.
	Template json.RawMessage `json:"template"`
	// Disks are the disks that the template needs.
	Disks []PlannedDisk `json:"disks"`
	// Agreements are the texts of licences that have to be accepted, at most 64 KiB of each.
	Agreements []string          `json:"agreements,omitempty"`
	Notes      []conversion.Note `json:"notes,omitempty"`
}

// PlannedDisk is a disk of a plan.
type PlannedDisk struct {
	// Name is the name of the PersistentVolumeClaim to which the template refers.
	Name string `json:"name"`
	// Volume is the name of the volume in the VirtualMachine, File that of the file or the digest of the layer in the package.
	Volume string `json:"volume"`
	File   string `json:"file"`
	// Size is the size of the disk as the guest sees it, in bytes.
	Size  int64 `json:"size"`
	CDROM bool  `json:"cdrom,omitempty"`
}

// Progress is how far one disk is.
type Progress struct {
	Name string `json:"name"`
	// Done counts the bytes of the disk's file in the package that were read, of Total.
	Done  int64 `json:"done"`
	Total int64 `json:"total"`
	// Digest of the disk's file in the package (sha256:HEX), once it is complete.
	Digest string `json:"digest,omitempty"`
}
