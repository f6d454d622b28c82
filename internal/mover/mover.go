package mover

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vmstencil/stencil/internal/outbound"
	"github.com/vmstencil/stencil/transfer"
)

// Mover works on one task.
type Mover struct {
	Folders Folders
	Task    *transfer.Task
	// Wait waits before another attempt to read a source, see resume.Content.
	Wait func(ctx context.Context, attempt int) error

	report report
	upload upload
}

// New returns a mover whose state is Running.
func New(folders Folders, task *transfer.Task) *Mover {
	m := &Mover{Folders: folders, Task: task, upload: upload{done: make(chan error, 1)}}
	m.report.state.Phase = transfer.Running
	if task.Stage != transfer.Inspect {
		for _, d := range task.Disks {
			m.report.state.Disks = append(m.report.state.Disks, transfer.Progress{Name: d.Name})
		}
	}
	return m
}

// Work works on the task until it has succeeded or failed, or the context ends.
func (m *Mover) Work(ctx context.Context) {
	if seconds := m.Task.Limits.Seconds; seconds > 0 {
		var cancel context.CancelFunc
		limit := time.Duration(seconds) * time.Second
		ctx, cancel = context.WithTimeoutCause(ctx, limit, failed(transfer.ReasonTimedOut, false, "the transfer takes longer than %s", limit))
		defer cancel()
	}
	err := m.work(ctx)
	switch ended := ctx.Err(); {
	case err == nil || ended == nil:
	case errors.Is(ended, context.DeadlineExceeded):
		err = context.Cause(ctx)
	default:
		// The cause is the signal.
		err = ended
	}
	m.report.change(func(s *transfer.State) {
		if s.Phase = transfer.Succeeded; err != nil {
			s.Phase, s.Failure = transfer.Failed, failureOf(err)
		}
	})
}

func (m *Mover) work(ctx context.Context) error {
	switch m.Task.Stage {
	case transfer.Receive:
		return m.receive(ctx)
	case transfer.Inspect:
		return m.inspect(ctx)
	case transfer.Import:
		if err := m.importDisks(ctx); err != nil {
			return err
		}
		m.seal(ctx)
		return nil
	case transfer.Export:
		if err := m.export(ctx); err != nil {
			return err
		}
		m.seal(ctx)
		return nil
	case transfer.Examine:
		m.seal(ctx)
		return nil
	}
	return failed(transfer.ReasonInvalidTask, false, "the task has the stage %q", m.Task.Stage)
}

// Failure returns the failure, and nil if there is none.
func (m *Mover) Failure() *transfer.Failure {
	m.report.mutex.Lock()
	defer m.report.mutex.Unlock()
	return m.report.state.Failure
}

// networks parses the networks of the task.
func (m *Mover) networks() (networks outbound.Networks, err error) {
	if networks.Allowed, err = parse("allowed network", m.Task.AllowedNetworks); err != nil {
		return networks, err
	}
	networks.Cluster, err = parse("network of the cluster", m.Task.ClusterNetworks)
	return networks, err
}

func parse(what string, texts []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, failed(transfer.ReasonInvalidTask, false, "the %s %q: %v", what, text, err)
		}
		all = append(all, network)
	}
	return all, nil
}

// checkDisks compares disks with the limits.
func (m *Mover) checkDisks(disks int, bytes int64) error {
	limits := m.Task.Limits
	if limits.Disks > 0 && disks > limits.Disks {
		return failed(transfer.ReasonLimitExceeded, false, "the package has %d disks, and at most %d are allowed", disks, limits.Disks)
	}
	if limits.Bytes > 0 && bytes > limits.Bytes {
		return failed(transfer.ReasonLimitExceeded, false, "the disks of the package have %d bytes, and at most %d are allowed", bytes, limits.Bytes)
	}
	return nil
}

// mostStored is the most bytes that a package may have.
func (m *Mover) mostStored() int64 {
	if bytes := m.Task.Limits.Bytes; bytes > 0 && bytes < 1<<60 {
		// Formats have tables, and packages other files.
		return bytes + bytes/16 + 1<<30
	}
	return 1 << 62
}

// named adds the name of the disk to an error.
func named(name string, err error) error {
	if err == nil {
		return nil
	}
	if known := (*transfer.Failure)(nil); errors.As(err, &known) {
		return err
	}
	return fmt.Errorf("disk %s: %w", name, err)
}
