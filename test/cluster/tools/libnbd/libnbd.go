// Package libnbd stands in for the Go binding of libnbd, of which no module proxy serves the versions that KubeVirt and CDI require, and Debian's library is too
// old for KubeVirt. virt-launcher uses it only for backups that are pulled, cdi-importer only for imports from VMware: all calls here return an error.
package libnbd

// LibnbdError is the error of a call.
type LibnbdError struct{ text string }

func (e *LibnbdError) Error() string { return e.text }

var errMissing = &LibnbdError{"this program was built without libnbd"}

// Names of metadata contexts, and flags of extents.
const (
	CONTEXT_BASE_ALLOCATION   = "base:allocation"
	CONTEXT_QEMU_DIRTY_BITMAP = "qemu:dirty-bitmap:"

	STATE_HOLE  uint32 = 1
	STATE_ZERO  uint32 = 2
	STATE_DIRTY uint32 = 1

	CMD_FLAG_REQ_ONE CmdFlag = 8
)

// CmdFlag is a flag of a call.
type CmdFlag uint32

// LibnbdExtent is a part of a disk.
type LibnbdExtent struct{ Length, Flags uint64 }

// Options of calls.
type (
	BlockStatusOptargs struct {
		FlagsSet bool
		Flags    CmdFlag
	}
	BlockStatus64Optargs struct{}
	PreadOptargs         struct{}
)

// ExtentCallback receives extents.
type ExtentCallback func(metacontext string, offset uint64, entries []uint32, nbdErr *int) int

// Libnbd is a connection.
type Libnbd struct{}

func Create() (*Libnbd, error) { return nil, errMissing }

func (*Libnbd) Close() *LibnbdError                 { return nil }
func (*Libnbd) AddMetaContext(string) error         { return errMissing }
func (*Libnbd) CanMetaContext(string) (bool, error) { return false, errMissing }
func (*Libnbd) SetExportName(string) error          { return errMissing }
func (*Libnbd) ConnectUnix(string) error            { return errMissing }
func (*Libnbd) ConnectUri(string) error             { return errMissing }
func (*Libnbd) GetSize() (uint64, error)            { return 0, errMissing }

func (*Libnbd) Pread([]byte, uint64, *PreadOptargs) error { return errMissing }

func (*Libnbd) BlockStatus(uint64, uint64, ExtentCallback, *BlockStatusOptargs) error {
	return errMissing
}

func (*Libnbd) BlockStatus64(uint64, uint64, func(string, uint64, []LibnbdExtent, *int) int, *BlockStatus64Optargs) error {
	return errMissing
}
