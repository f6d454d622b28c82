package mover

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/transfer"
)

// target is a volume that a disk is written to.
type target struct {
	disk transfer.Disk
	file *os.File
	// written counts bytes, of which there may be ratio times as many as stored returns; from ratioFrom on.
	written atomic.Int64
	ratio   int64
	stored  func() int64
}

// ratioFrom is the number of written bytes from which the ratio is checked.
const ratioFrom = 64 << 20

// openTarget opens a volume. Afterwards it reads as zeros, and has room for the disk.
func (m *Mover) openTarget(ctx context.Context, d transfer.Disk, stored func() int64) (t *target, err error) {
	if d.Size < 1 || d.Size > disk.MaxSize {
		return nil, failed(transfer.ReasonInvalidTask, false, "the disk %s has %d bytes", d.Name, d.Size)
	}
	t = &target{disk: d, ratio: m.Task.Limits.Ratio, stored: stored}
	t.file, err = m.Folders.disk(d, os.O_RDWR)
	if err != nil {
		return nil, failed(transfer.ReasonInvalidTask, false, "the volume of the disk %s cannot be opened: %v", d.Name, cause(err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.file.Close())
		}
	}()
	if d.Block {
		return t, t.clearDevice(ctx)
	}
	return t, t.clearFile()
}

func (t *target) tooSmall(has int64) error {
	return failed(transfer.ReasonVolumeTooSmall, false, "the volume of the disk %s has %d bytes, and the disk has %d", t.disk.Name, has, t.disk.Size)
}

// clearFile makes the file one hole.
func (t *target) clearFile() error {
	var on unix.Statfs_t
	if err := unix.Fstatfs(int(t.file.Fd()), &on); err != nil {
		return err
	}
	var was unix.Stat_t
	if err := unix.Fstat(int(t.file.Fd()), &was); err != nil {
		return err
	}
	free := float64(on.Bavail)*float64(on.Bsize) + float64(was.Blocks)*512
	if free < float64(t.disk.Size) {
		return t.tooSmall(int64(math.Min(free, 1<<62)))
	}
	return disk.Clear(t.file, t.disk.Size)
}

const zeroChunk = 256 << 20

// clearDevice makes the part of a device that the disk has read as zeros: by discarding it where the device guarantees zeros then, otherwise by writing them.
func (t *target) clearDevice(ctx context.Context) error {
	has, err := t.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if has < t.disk.Size {
		return t.tooSmall(has)
	}
	for offset := int64(0); offset < t.disk.Size; offset += zeroChunk {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := zero(t.file, offset, min(zeroChunk, t.disk.Size-offset)); err != nil {
			return err
		}
	}
	return nil
}

func zero(file *os.File, offset, length int64) error {
	descriptor := int(file.Fd())
	for _, mode := range []uint32{unix.FALLOC_FL_PUNCH_HOLE, unix.FALLOC_FL_ZERO_RANGE} {
		err := unix.Fallocate(descriptor, mode|unix.FALLOC_FL_KEEP_SIZE, offset, length)
		if err == nil {
			return nil
		}
		// EINVAL: a range that is not aligned to the sectors of the device.
		if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
			return os.NewSyscallError("fallocate", err)
		}
	}
	zeros := make([]byte, min(length, 1<<20))
	for end := offset + length; offset < end; {
		n, err := file.WriteAt(zeros[:min(int64(len(zeros)), end-offset)], offset)
		if err != nil {
			return err
		}
		offset += int64(n)
	}
	return nil
}

// WriteAt implements io.WriterAt.
func (t *target) WriteAt(p []byte, offset int64) (int, error) {
	if offset < 0 || int64(len(p)) > t.disk.Size-offset {
		return 0, failed(transfer.ReasonNotAPackage, false, "the disk %s has more than its %d bytes", t.disk.Name, t.disk.Size)
	}
	written := t.written.Add(int64(len(p)))
	if t.ratio > 0 && written > ratioFrom && written/t.ratio > t.stored() {
		return 0, failed(transfer.ReasonLimitExceeded, false, "the file of the disk %s expands to more than %d times its size", t.disk.Name, t.ratio)
	}
	n, err := t.file.WriteAt(p, offset)
	if err == nil && written/writebackStep != (written-int64(len(p)))/writebackStep {
		t.startWriteback()
	}
	return n, err
}

// writebackStep is the number of written bytes after which the kernel is to begin to write them to the device.
const writebackStep = 16 << 20

// startWriteback has the kernel begin to write what is written, without waiting for it, so that the device works while disks are expanded, and finish
// has little to wait for. It is a hint: a file system that does not support it writes later, and finish returns its errors.
func (t *target) startWriteback() {
	_ = unix.SyncFileRange(int(t.file.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
}

// finish makes what was written durable.
func (t *target) finish() error { return t.file.Sync() }
