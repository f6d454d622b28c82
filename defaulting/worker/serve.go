package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/vmstencil/stencil/defaulting/launcher"
)

// Facts are the versions of a worker's libvirt and QEMU.
type Facts struct {
	// Libvirt is its version, such as 9.0.0.
	Libvirt string `json:"libvirt"`
	// QEMU is the version of the QEMU for the worker's own architecture.
	QEMU string `json:"qemu"`
}

// Libvirt is the part of libvirt that a worker uses.
type Libvirt interface {
	launcher.Definer
	// Machines returns the machine types by architecture, an alias followed by an equals sign
	// and the version that it stands for. It queries every QEMU, which takes seconds the first
	// time.
	Machines() (map[string][]string, error)
}

// Serve answers requests until the input ends, up to parallel of them at a time.
func Serve(ctx context.Context, in io.Reader, out io.Writer, libvirt Libvirt, facts Facts, parallel int) error {
	payload, err := json.Marshal(facts)
	if err != nil {
		return fmt.Errorf("writing what is known of libvirt: %w", err)
	}
	if err := (Frame{Kind: Ready, Payload: payload}).Write(out); err != nil {
		return err
	}
	var (
		writing sync.Mutex
		working sync.WaitGroup
		slots   = make(chan struct{}, parallel)
	)
	defer working.Wait()
	for {
		request, err := Read(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		slots <- struct{}{}
		working.Go(func() {
			defer func() { <-slots }()
			answer := answer(ctx, libvirt, request)
			writing.Lock()
			defer writing.Unlock()
			// When the supervisor has ended, the input ends as well.
			_ = answer.Write(out)
		})
	}
}

func answer(ctx context.Context, libvirt Libvirt, request Frame) Frame {
	f := Frame{Number: request.Number}
	kind, do := Described, func() (string, error) { return libvirt.Define(ctx, string(request.Payload)) }
	if request.Kind == Survey {
		kind, do = Surveyed, func() (string, error) { return survey(libvirt) }
	}
	payload, err := do()
	var rejected *launcher.RejectedError
	switch {
	case err == nil:
		f.Kind, f.Payload = kind, []byte(payload)
	case errors.As(err, &rejected):
		f.Kind, f.Payload = Rejected, []byte(rejected.Message)
	default:
		f.Kind, f.Payload = Failed, []byte(err.Error())
	}
	return f
}

func survey(libvirt Libvirt) (string, error) {
	machines, err := libvirt.Machines()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(machines)
	if err != nil {
		return "", fmt.Errorf("writing the machine types: %w", err)
	}
	return string(text), nil
}
