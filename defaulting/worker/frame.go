package worker

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Kind is the kind of a frame.
type Kind byte

// The kinds of frames.
const (
	// Define carries a domain to the worker.
	Define Kind = iota + 1
	// Described carries libvirt's description from the worker.
	Described
	// Rejected carries libvirt's reason for rejecting the domain.
	Rejected
	// Failed carries the reason why libvirt was not available.
	Failed
	// Ready carries the worker's Facts as JSON. It is the first frame of a worker, and has the
	// number 0.
	Ready
	// Survey requests the machine types from the worker.
	Survey
	// Surveyed carries them as JSON: names by architecture.
	Surveyed
)

// MaxPayload bounds the payload of a frame, in bytes. The largest VM needs 100 KiB.
const MaxPayload = 4 << 20

// Frame is one message.
type Frame struct {
	Kind Kind
	// Number is the number of the request.
	Number  uint64
	Payload []byte
}

const headerSize = 1 + 8 + 4

// Write sends the frame in one call.
func (f Frame) Write(w io.Writer) error {
	message := make([]byte, headerSize, headerSize+len(f.Payload))
	message[0] = byte(f.Kind)
	binary.BigEndian.PutUint64(message[1:], f.Number)
	binary.BigEndian.PutUint32(message[9:], uint32(len(f.Payload)))
	if _, err := w.Write(append(message, f.Payload...)); err != nil {
		return fmt.Errorf("writing a frame: %w", err)
	}
	return nil
}

// Read receives a frame. At the end it returns io.EOF.
func Read(r io.Reader) (Frame, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return Frame{}, err
	}
	size := binary.BigEndian.Uint32(header[9:])
	if size > MaxPayload {
		return Frame{}, fmt.Errorf("reading a frame: it has %d bytes, and at most %d are allowed", size, MaxPayload)
	}
	f := Frame{Kind: Kind(header[0]), Number: binary.BigEndian.Uint64(header[1:]), Payload: make([]byte, size)}
	if _, err := io.ReadFull(r, f.Payload); err != nil {
		return Frame{}, fmt.Errorf("reading a frame: %w", err)
	}
	return f, nil
}
