// Package resume reads a content over a connection that can be cut: it is opened again at the byte where it ended.
package resume

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"
)

// Attempts is how often a content is opened again without a byte of progress, and how often it is read again from its beginning.
const Attempts = 5

// Errors of contents.
var (
	// ErrChanged means that the content begins with other bytes than before.
	ErrChanged = errors.New("the content is another than when it was read first")
	// ErrStalled means that the source sent nothing for too long.
	ErrStalled = errors.New("the source sends nothing")
	// ErrCut means that a connection ended before the content.
	ErrCut = errors.New("the connection ended before the content")
)

// Content is what is read.
type Content struct {
	// Open opens the content at an offset. The body begins at the returned offset, which is 0 if the source supports no ranges. The context ends when the
	// body is closed, or stalls.
	Open func(ctx context.Context, offset int64) (body io.ReadCloser, begin int64, err error)
	// Temporary reports whether another attempt may succeed after an error of Open.
	Temporary func(err error) bool
	// Size is the number of bytes, and -1 if it is not known.
	Size int64
	// Stall is how long the source may send nothing; 0 is without a limit.
	Stall time.Duration
	// Pace is how slowly the source may send.
	Pace Pace
	// Wait waits before an attempt, numbered from 1. Nil is [Wait].
	Wait func(ctx context.Context, attempt int) error
}

// Wait waits 1 s before the first attempt, then twice as long each time.
func Wait(ctx context.Context, attempt int) error {
	timer := time.NewTimer(time.Second << (attempt - 1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Reader reads a content once, from its beginning to its end. It must be closed.
type Reader struct {
	content Content
	ctx     context.Context
	body    io.ReadCloser
	cancel  context.CancelCauseFunc
	offset  int64
	// failed counts attempts without progress, restarts those from the beginning.
	failed, restarts int
	// sum is the digest of what was read, with which a content that is read again from its beginning is compared.
	sum   hash.Hash
	meter *Meter
	err   error
}

// NewReader returns a reader, which ends with a context. It connects with the first call of Read.
func NewReader(ctx context.Context, content Content) *Reader {
	if content.Wait == nil {
		content.Wait = Wait
	}
	return &Reader{content: content, ctx: ctx, sum: sha256.New(), meter: NewMeter(content.Pace)}
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	for r.err == nil {
		n, err := r.read(p)
		r.offset += int64(n)
		r.sum.Write(p[:n])
		switch {
		case n > 0:
			r.failed = 0
			if errors.Is(err, io.EOF) {
				r.err = io.EOF
			} else if err != nil {
				r.closeBody()
			}
			return n, nil
		case err == nil:
		case r.ctx.Err() != nil:
			r.err = context.Cause(r.ctx)
		case errors.Is(err, io.EOF):
			r.err = io.EOF
		default:
			r.closeBody()
			r.err = r.retry(err)
		}
	}
	return 0, r.err
}

// read reads from the body, which it opens.
func (r *Reader) read(p []byte) (int, error) {
	if r.content.Size >= 0 && r.offset == r.content.Size {
		return 0, io.EOF
	}
	if r.body == nil {
		if err := r.open(); err != nil {
			return 0, err
		}
	}
	n, err := r.paced(p)
	if r.content.Size >= 0 && int64(n) > r.content.Size-r.offset {
		return 0, ErrChanged
	}
	if errors.Is(err, io.EOF) && r.content.Size >= 0 && r.offset+int64(n) < r.content.Size {
		err = ErrCut
	}
	return n, err
}

// paced reads what the source sends.
func (r *Reader) paced(p []byte) (n int, err error) {
	began := time.Now()
	err = r.timed(func() (err error) { n, err = r.body.Read(p); return err })
	if slow := r.meter.Add(n, time.Since(began)); slow != nil && !errors.Is(err, io.EOF) {
		return 0, slow
	}
	return n, err
}

// timed calls a function that must return before the source stalls.
func (r *Reader) timed(do func() error) error {
	if r.content.Stall <= 0 {
		return do()
	}
	cancel := r.cancel
	timer := time.AfterFunc(r.content.Stall, func() { cancel(ErrStalled) })
	err := do()
	if !timer.Stop() && err != nil {
		return fmt.Errorf("%w for %s", ErrStalled, r.content.Stall)
	}
	return err
}

// open opens the content where it ended.
func (r *Reader) open() error {
	var ctx context.Context
	ctx, r.cancel = context.WithCancelCause(r.ctx)
	var begin int64
	err := r.timed(func() (err error) { r.body, begin, err = r.content.Open(ctx, r.offset); return err })
	if err != nil {
		r.cancel(nil)
		return err
	}
	switch {
	case begin == r.offset:
		return nil
	case begin != 0:
		return &permanent{fmt.Errorf("the source answers with byte %d to a request from byte %d", begin, r.offset)}
	}
	if r.restarts++; r.restarts > Attempts {
		return &permanent{fmt.Errorf("the source supports no ranges, and the connection was cut %d times: %w", r.restarts, ErrCut)}
	}
	return r.skip()
}

// skip reads the beginning of the body, which was read before.
func (r *Reader) skip() error {
	again := sha256.New()
	buffer := make([]byte, 64<<10)
	for left := r.offset; left > 0; {
		n, err := r.paced(buffer[:min(left, int64(len(buffer)))])
		again.Write(buffer[:n])
		left -= int64(n)
		if left == 0 {
			break
		}
		if errors.Is(err, io.EOF) {
			return ErrCut
		}
		if err != nil {
			return err
		}
	}
	if !bytes.Equal(again.Sum(nil), r.sum.Sum(nil)) {
		return &permanent{ErrChanged}
	}
	return nil
}

// retry waits for another attempt, or returns the error after which there is none.
func (r *Reader) retry(err error) error {
	var final *permanent
	if errors.As(err, &final) || errors.Is(err, ErrChanged) {
		return err
	}
	broken := errors.Is(err, ErrCut) || errors.Is(err, ErrStalled)
	if !broken && r.content.Temporary != nil && !r.content.Temporary(err) {
		return err
	}
	if r.failed++; r.failed > Attempts {
		return err
	}
	return r.content.Wait(r.ctx, r.failed)
}

func (r *Reader) closeBody() {
	if r.body != nil {
		_ = r.body.Close()
		r.cancel(nil)
		r.body = nil
	}
}

// Close closes the connection.
func (r *Reader) Close() error {
	r.closeBody()
	return nil
}

// permanent is an error after which no other attempt is made.
type permanent struct{ error }

func (p *permanent) Unwrap() error { return p.error }
