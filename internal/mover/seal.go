package mover

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/seal"
	"github.com/vmstencil/stencil/transfer"
)

// sealTimeout is how long the disks of a transfer are examined.
const sealTimeout = 3 * time.Minute

// seal reports what identifies one VM on the disks that were written or read. It never fails: what cannot be examined is Unknown. CD-ROMs are
// not examined, because no system runs from them.
func (m *Mover) seal(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sealTimeout)
	defer cancel()
	var states []seal.State
	var findings, gaps []string
	for _, d := range m.Task.Disks {
		if d.CDROM {
			continue
		}
		found, name := m.sealOf(ctx, d), cmp.Or(d.Source, d.Name)
		states = append(states, found.Sealed)
		for _, f := range found.Findings {
			findings = append(findings, sealLine(name, f.Partition, f.Path, f.Reason))
		}
		for _, g := range found.Unexamined {
			gaps = append(gaps, sealLine(name, g.Partition, g.Path, g.Reason))
		}
	}
	result := &transfer.Seal{Sealed: seal.Merge(states...)}
	lines := gaps
	if result.Sealed == seal.False {
		lines = findings
	}
	result.Count, result.Lines = len(lines), lines[:min(len(lines), transfer.MaxSealLines)]
	m.report.change(func(s *transfer.State) { s.Seal = result })
}

func (m *Mover) sealOf(ctx context.Context, d transfer.Disk) seal.Report {
	file, err := m.Folders.disk(d, os.O_RDONLY)
	if err != nil {
		return seal.Report{Sealed: seal.Unknown, Unexamined: []seal.Gap{{Reason: fmt.Sprintf("the volume cannot be opened: %v", cause(err))}}}
	}
	defer file.Close()
	// A volume may be larger than the disk, and the size of an export is that of the volume.
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return seal.Report{Sealed: seal.Unknown, Unexamined: []seal.Gap{{Reason: fmt.Sprintf("the size cannot be read: %v", cause(err))}}}
	}
	if d.Size > 0 {
		size = min(size, d.Size)
	}
	return seal.Inspect(ctx, io.NewSectionReader(file, 0, size), size)
}

// sealLine is a sentence about a part of a disk.
func sealLine(disk string, partition int, path, reason string) string {
	where := disk
	if partition > 0 {
		where += fmt.Sprintf(" partition %d", partition)
	}
	if path != "" {
		reason = path + " (" + reason + ")"
	}
	return excerpt.Of(where+": "+reason, transfer.MaxSealLine)
}
