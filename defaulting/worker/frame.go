package worker

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Kind is what a frame is.
type Kind byte

// The kinds of frames.
const (
	// Define has a domain, to the worker.
	Define Kind = iota + 1
	// Described has libvirt's description, from the worker.
	Described
	// Refused has libvirt's reason for refusing the domain.
	Refused
	// Failed has the reason why libvirt could not be asked.
	Failed
	// Ready has the worker's Facts as JSON. It is the first frame of a worker, and has
	// the number 0.
	Ready
	// Survey asks for the machine types, to the worker.
	Survey
	// Surveyed has them as JSON: names by architecture.
	Surveyed
)

// MaxPayload bounds a frame, in bytes. A machine of the largest kind takes 100 KiB.
const MaxPayload = 4 << 20

// Frame is one message.
type Frame struct {
	Kind Kind
	// Number is the request's.
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
