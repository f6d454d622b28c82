package seal

import (
	"context"
	"errors"
	"io"
	"time"
)

const (
	// MaxRead is how many bytes are read of a disk. A system of 40 GiB takes less than 1 MiB.
	MaxRead = 64 << 20
	// MaxEntries is how many names of directories are visited on a disk.
	MaxEntries = 1 << 20
	// MaxFindings is how many findings, and how many unexamined parts, a report has.
	MaxFindings = 100
	// MaxTime is how long a disk is examined.
	MaxTime = time.Minute
)

// limitError ends the examination of the disk.
type limitError string

func (e limitError) Error() string { return string(e) }

const (
	errRead    = limitError("more than 64 MiB have to be read")
	errEntries = limitError("directories have more than 1048576 names")
	errTime    = limitError("it takes more than a minute")
)

// source is a part of a disk. Reads are bounded by the limits of the disk, which its parts share.
type source struct {
	r            io.ReaderAt
	offset, size int64
	limits       *limits
}

// limits is what may still be read of a disk.
type limits struct {
	ctx           context.Context
	bytes, names  int64
	reader, ended error
}

var errOutside = errors.New("what is to be read is outside of the partition")

// ReadAt implements io.ReaderAt.
func (s *source) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > s.size-int64(len(p)) {
		return 0, errOutside
	}
	if err := s.limits.check(); err != nil {
		return 0, err
	}
	if s.limits.bytes -= int64(len(p)); s.limits.bytes < 0 {
		return 0, s.limits.end(errRead)
	}
	n, err := s.r.ReadAt(p, s.offset+off)
	if n == len(p) {
		return n, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	s.limits.reader = err
	return n, err
}

// check returns why nothing more is read.
func (l *limits) check() error {
	if l.ended != nil {
		return l.ended
	}
	switch err := l.ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return l.end(errTime)
	case err != nil:
		return l.end(err)
	}
	return nil
}

// name counts a name of a directory.
func (l *limits) name() error {
	if l.names--; l.names < 0 {
		return l.end(errEntries)
	}
	return l.check()
}

func (l *limits) end(err error) error {
	if l.ended == nil {
		l.ended = err
	}
	return l.ended
}
