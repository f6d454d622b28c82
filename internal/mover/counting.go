package mover

import (
	"crypto/sha256"
	"hash"
	"io"
	"sync/atomic"

	"github.com/vmstencil/stencil/transfer"
)

// summed is a package whose checksum is computed as it is read, if one is requested.
type summed struct {
	io.Reader
	sum hash.Hash
}

func (m *Mover) summed(from io.Reader) *summed {
	if m.Task.Checksum == "" {
		return &summed{Reader: from}
	}
	sum := sha256.New()
	return &summed{io.TeeReader(from, sum), sum}
}

// compareChecksum reads the rest of a package, which is part of its checksum, and compares the sum of all that was read with the requested one.
func (m *Mover) compareChecksum(rest *summed) error {
	if _, err := io.Copy(io.Discard, rest); err != nil {
		return err
	}
	if rest.sum == nil {
		return nil
	}
	if got := textOf(rest.sum); got != m.Task.Checksum {
		return failed(transfer.ReasonChecksumMismatch, false, "the package has the digest %s, and %s is requested", got, m.Task.Checksum)
	}
	return nil
}

// meter counts the bytes of a file that were read.
type meter struct {
	from   io.Reader
	n      atomic.Int64
	report func(done int64)
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	m.report(m.n.Add(int64(n)))
	return n, err
}

// counted wraps the stored bytes of a disk.
func (m *Mover) counted(d transfer.Disk, from io.Reader, size int64) *meter {
	update := m.report.disk(d.Name)
	update(func(p *transfer.Progress) { p.Done, p.Total, p.Digest = 0, size, "" })
	return &meter{from: from, report: func(done int64) { update(func(p *transfer.Progress) { p.Done = done }) }}
}
