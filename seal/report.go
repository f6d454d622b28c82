package seal

// State is whether a disk is sealed.
type State string

// The states of a disk. False takes precedence over Unknown, and Unknown over True.
const (
	// True means that everything on the disk was examined, and nothing was found.
	True State = "True"
	// False means that something was found.
	False State = "False"
	// Unknown means that nothing was found, but a part of the disk was not examined.
	Unknown State = "Unknown"
)

// Report is what was found on a disk.
type Report struct {
	Sealed State `json:"sealed"`
	// Findings are what identifies a VM, at most MaxFindings.
	Findings []Finding `json:"findings,omitempty"`
	// Unexamined are the parts of the disk that were not examined, at most MaxFindings.
	Unexamined []Gap `json:"unknown,omitempty"`
}

// Finding is a file that identifies a VM.
type Finding struct {
	// Partition is the number of the partition; 0 if the file system is on the whole disk.
	Partition int `json:"partition,omitempty"`
	// Path is that within the file system. Characters that cannot be printed are escaped as in Go.
	Path string `json:"path"`
	// Reason is what the file is, such as "SSH host key".
	Reason string `json:"reason"`
}

// Gap is a part of a disk that was not examined.
type Gap struct {
	// Partition is the number of the partition; 0 is the whole disk.
	Partition int `json:"partition,omitempty"`
	// Path is a directory or file of the file system; empty for all of it.
	Path   string `json:"path,omitempty"`
	Reason string `json:"reason"`
}

// Merge returns the state of several disks.
func Merge(states ...State) State {
	merged := True
	for _, s := range states {
		if s == False {
			return False
		}
		if s != True {
			merged = Unknown
		}
	}
	return merged
}

// finish sets the state.
func (r *Report) finish() Report {
	switch {
	case len(r.Findings) > 0:
		r.Sealed = False
	case len(r.Unexamined) > 0:
		r.Sealed = Unknown
	default:
		r.Sealed = True
	}
	return *r
}
