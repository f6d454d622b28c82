package ova

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Error reports an OVA that is malformed, contradicts its descriptor or manifest, or exceeds a limit.
type Error struct {
	// Member is the name of the member; empty if the error concerns the whole archive.
	Member string
	// Message is the error and what to do about it.
	Message string
	// Err is the cause, or nil. Message contains its text, unless it is ErrDigest.
	Err error
}

func (e *Error) Error() string {
	if e.Member == "" {
		return "OVA: " + e.Message
	}
	return fmt.Sprintf("OVA, member %s: %s", shown(e.Member), e.Message)
}

func (e *Error) Unwrap() error { return e.Err }

// ErrNoManifest is returned when digests are to be verified and the OVA has none.
var ErrNoManifest = errors.New("OVA: contains no manifest, so its content cannot be verified; create the OVA with a manifest, or import it without verification")

// errPacked is for an archive that is compressed as a whole.
var errPacked = &Error{Message: "is compressed with gzip as a whole: gunzip it"}

// ErrDigest is the cause of an Error about a member whose digest is not the one of the manifest.
var ErrDigest = errors.New("the digest differs")

func fail(member, message string, arguments ...any) error {
	return &Error{Member: member, Message: fmt.Sprintf(message, arguments...)}
}

// broken wraps an error of the archive or of decompression.
func broken(member string, err error) error {
	var own *Error
	switch {
	case errors.As(err, &own):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return &Error{Member: member, Message: "is truncated; transfer it again", Err: err}
	}
	return &Error{Member: member, Message: "cannot be read: " + err.Error(), Err: err}
}

// shown returns a name for a message.
func shown(name string) string {
	const most = 64
	if len(name) > most {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(name[:most], ""))
	}
	return fmt.Sprintf("%q", name)
}
