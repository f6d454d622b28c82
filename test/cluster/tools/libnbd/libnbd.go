// Package libnbd stands in for the Go binding of libnbd, of which no module proxy serves the version that KubeVirt requires, and Debian's library is too old
// for it. virt-launcher uses it for backups that are pulled only: all calls here return an error.
package libnbd

import "errors"

var errMissing = errors.New("this virt-launcher was built without libnbd")

// Names of metadata contexts, and flags of extents.
const (
	CONTEXT_BASE_ALLOCATION   = "base:allocation"
	CONTEXT_QEMU_DIRTY_BITMAP = "qemu:dirty-bitmap:"

	STATE_HOLE  uint32 = 1
	STATE_ZERO  uint32 = 2
	STATE_DIRTY uint32 = 1
)

// LibnbdExtent is a part of a disk.
type LibnbdExtent struct{ Length, Flags uint64 }

// Options of calls.
type (
	BlockStatus64Optargs struct{}
	PreadOptargs         struct{}
)

// Libnbd is a connection.
type Libnbd struct{}

func Create() (*Libnbd, error) { return nil, errMissing }

func (*Libnbd) Close() error                        { return nil }
func (*Libnbd) AddMetaContext(string) error         { return errMissing }
func (*Libnbd) CanMetaContext(string) (bool, error) { return false, errMissing }
func (*Libnbd) SetExportName(string) error          { return errMissing }
func (*Libnbd) ConnectUnix(string) error            { return errMissing }
func (*Libnbd) GetSize() (uint64, error)            { return 0, errMissing }

func (*Libnbd) Pread([]byte, uint64, *PreadOptargs) error { return errMissing }

func (*Libnbd) BlockStatus64(uint64, uint64, func(string, uint64, []LibnbdExtent, *int) int, *BlockStatus64Optargs) error {
	return errMissing
}
