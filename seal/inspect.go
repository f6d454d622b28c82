package seal

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/vmstencil/stencil/seal/internal/partition"
)

// minPartition is less than any file system needs, in bytes.
const minPartition = 4096

// Inspect examines a raw disk of a size in bytes. It always returns a report: what it cannot read, and what does not end within
// MaxTime or the time of the context, is Unknown.
func Inspect(ctx context.Context, disk io.ReaderAt, size int64) Report {
	ctx, cancel := context.WithTimeout(ctx, MaxTime)
	defer cancel()
	i := inspection{limits: &limits{ctx: ctx, bytes: MaxRead, names: MaxEntries}}
	i.guard(0, func() { i.disk(disk, size) })
	if i.limits.ended != nil {
		i.unexamined(Gap{Reason: "the examination ended early: " + i.limits.ended.Error()})
	}
	return i.report.finish()
}

// inspection is the examination of a disk.
type inspection struct {
	limits *limits
	report Report
	// capped is set once findings or unexamined parts are left out.
	capped bool
}

// guard turns a panic into an unexamined partition: a disk that no code foresaw must not end an import.
func (i *inspection) guard(number int, examine func()) {
	defer func() {
		if problem := recover(); problem != nil {
			i.unexamined(Gap{Partition: number, Reason: fmt.Sprintf("internal error: %v", problem)})
		}
	}()
	examine()
}

// disk examines the partitions of a disk, or the file system that is on all of it.
func (i *inspection) disk(r io.ReaderAt, size int64) {
	whole := &source{r: r, size: size, limits: i.limits}
	partitions, more, err := partition.Find(whole, size)
	if onWhole := detect(whole); onWhole.covers(err == nil) {
		i.fileSystem(0, whole, onWhole)
		return
	}
	switch {
	case errors.Is(err, partition.ErrNone):
		i.unexamined(Gap{Reason: "there is no partition table and no known file system"})
		return
	case err != nil:
		i.unexamined(Gap{Reason: err.Error()})
		return
	case len(partitions) == 0:
		i.unexamined(Gap{Reason: "the partition table is empty"})
	case more:
		i.unexamined(Gap{Reason: fmt.Sprintf("there are more than %d partitions", partition.Max)})
	}
	for _, p := range partitions {
		if p.Purpose != partition.Data || p.Size < minPartition {
			continue
		}
		part := &source{r: r, offset: p.Offset, size: p.Size, limits: i.limits}
		i.guard(p.Number, func() { i.fileSystem(p.Number, part, detect(part)) })
	}
}

func (i *inspection) found(f Finding) {
	if len(i.report.Findings) < MaxFindings {
		i.report.Findings = append(i.report.Findings, f)
		return
	}
	i.cap()
}

func (i *inspection) unexamined(g Gap) {
	if len(i.report.Unexamined) < MaxFindings {
		i.report.Unexamined = append(i.report.Unexamined, g)
		return
	}
	i.cap()
}

// cap replaces the last unexamined part by the note that the report is not complete.
func (i *inspection) cap() {
	if i.capped {
		return
	}
	i.capped = true
	if len(i.report.Unexamined) == MaxFindings {
		i.report.Unexamined = i.report.Unexamined[:MaxFindings-1]
	}
	i.report.Unexamined = append(i.report.Unexamined, Gap{Reason: fmt.Sprintf("there are more than %d findings; the others are not listed", MaxFindings)})
}
