package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/vmstencil/stencil/internal/resume"
	"github.com/vmstencil/stencil/transfer"
)

const (
	// blockBytes is the size of the ranges in which small reads are cached. Headers of archives and tables of images are near each other.
	blockBytes = 32 << 10
	// maxBlocks bounds the cache.
	maxBlocks = 64
)

// Ranges reads a file by ranges.
type Ranges struct {
	f   *File
	ctx context.Context

	mutex  sync.Mutex
	blocks map[int64][]byte
	// order are the blocks of the cache, the oldest first.
	order []int64
}

// ReaderAt returns a reader by ranges, which ends with a context. Its methods may be called concurrently.
func (f *File) ReaderAt(ctx context.Context) *Ranges {
	return &Ranges{f: f, ctx: ctx, blocks: map[int64][]byte{}}
}

// ReadAt implements io.ReaderAt.
func (r *Ranges) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 {
		return 0, errors.New("negative offset")
	}
	if offset >= r.f.size {
		return 0, io.EOF
	}
	var end error
	if int64(len(p)) > r.f.size-offset {
		p, end = p[:r.f.size-offset], io.EOF
	}
	if len(p) > blockBytes {
		n, err := r.fetch(p, offset)
		if err != nil {
			return n, err
		}
		return n, end
	}
	for n := 0; n < len(p); {
		number := (offset + int64(n)) / blockBytes
		block, err := r.block(number)
		if err != nil {
			return n, err
		}
		n += copy(p[n:], block[offset+int64(n)-number*blockBytes:])
	}
	return len(p), end
}

// block returns a block of the file.
func (r *Ranges) block(number int64) ([]byte, error) {
	r.mutex.Lock()
	block, found := r.blocks[number]
	r.mutex.Unlock()
	if found {
		return block, nil
	}
	begin := number * blockBytes
	block = make([]byte, min(blockBytes, r.f.size-begin))
	if _, err := r.fetch(block, begin); err != nil {
		return nil, err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if _, found := r.blocks[number]; !found {
		if len(r.order) == maxBlocks {
			delete(r.blocks, r.order[0])
			r.order = r.order[1:]
		}
		r.blocks[number] = block
		r.order = append(r.order, number)
	}
	return block, nil
}

// fetch requests a range, again where it is cut.
func (r *Ranges) fetch(p []byte, offset int64) (int, error) {
	done := 0
	for attempt := 1; ; attempt++ {
		n, err := r.once(p[done:], offset+int64(done))
		if n > 0 {
			attempt = 1
		}
		if done += n; err == nil {
			return done, nil
		}
		if !temporary(err) || attempt > resume.Attempts || r.ctx.Err() != nil {
			return done, err
		}
		if err := r.f.options.Wait(r.ctx, attempt); err != nil {
			return done, err
		}
	}
}

func (r *Ranges) once(p []byte, offset int64) (int, error) {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	if r.f.options.Stall > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, r.f.options.Stall, failure(transfer.ReasonUnreachableSource, true, "%s: the server sends nothing for %s", shown(r.f.address), r.f.options.Stall))
		defer cancel()
	}
	response, err := r.f.get(ctx, offset, offset+int64(len(p))-1)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	first, _, err := contentRange(response)
	if response.StatusCode != http.StatusPartialContent || err != nil || first != offset {
		// A server that ignores If-Range, or has another content now.
		return 0, r.f.changed()
	}
	began := time.Now()
	n, err := io.ReadFull(response.Body, p)
	if slow := r.f.meter.Add(n, time.Since(began)); slow != nil {
		return n, failure(transfer.ReasonUnreachableSource, false, "%s: %v", shown(r.f.address), slow)
	}
	if err != nil {
		return n, r.f.explain(ctx, err)
	}
	return n, nil
}
