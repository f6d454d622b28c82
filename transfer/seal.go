package transfer

import "github.com/vmstencil/stencil/seal"

// Bounds of a Seal.
const (
	// MaxSealLines is how many findings a Seal has.
	MaxSealLines = 32
	// MaxSealLine is the maximum length of each, in bytes.
	MaxSealLine = 256
)

// Seal is what identifies one VM on the disks that a mover has written or read, see package seal.
type Seal struct {
	// Sealed is the state of all disks.
	Sealed seal.State `json:"sealed"`
	// Count is how many findings there are, or how many unexamined parts if there are none.
	Count int `json:"count,omitempty"`
	// Lines are the first of them, with disk, partition, path and reason, and never the content of a file.
	Lines []string `json:"lines,omitempty"`
}
