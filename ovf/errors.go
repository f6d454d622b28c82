package ovf

import (
	"fmt"
	"strings"
)

// DescriptorError reports content of a descriptor that is malformed or exceeds a limit.
type DescriptorError struct {
	// Line is the line of the descriptor, from 1; 0 if the error concerns the whole descriptor.
	Line int
	// Path is the element: names from the root, separated by slashes, such as Envelope/DiskSection/Disk. Empty if unknown.
	Path string
	// Message is the error and what to do about it.
	Message string
}

func (e *DescriptorError) Error() string {
	var at strings.Builder
	at.WriteString("OVF descriptor")
	if e.Line > 0 {
		fmt.Fprintf(&at, ", line %d", e.Line)
	}
	if e.Path != "" {
		fmt.Fprintf(&at, ", %s", e.Path)
	}
	return at.String() + ": " + e.Message
}

// UnsupportedError lists everything that a descriptor requires and this package does not understand.
type UnsupportedError struct {
	// Sections are the paths of the sections, with the namespace in parentheses if it is not OVF's, in document order.
	Sections []string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("OVF descriptor: these sections are required and not supported: %s; export without them, or set ovf:required=\"false\" on those that the virtual system runs without",
		strings.Join(e.Sections, ", "))
}

// shown returns a value for a message.
func shown(value string) string {
	if len(value) > maxShown {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(value[:maxShown], ""))
	}
	return fmt.Sprintf("%q", value)
}
