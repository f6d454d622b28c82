package vmdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
)

// ErrChanged is returned by WriteRange for a disk that is not the one of the layout any more.
var ErrChanged = errors.New("the disk has changed since its layout was made")

// errEnough ends writing after the requested bytes.
var errEnough = errors.New("all requested bytes are written")

// WriteRange writes length bytes of the stream from an offset on. It begins with the group of 32 MiB of the disk in which the offset is,
// and discards what precedes the offset there: nothing before it is read. The disk is that of the layout; if it has changed, the error is
// ErrChanged, where that shows.
func (e *Encoder) WriteRange(ctx context.Context, w io.Writer, layout *Layout, offset, length int64) error {
	if offset < 0 || length < 0 || offset > layout.Size() || length > layout.Size()-offset {
		return fmt.Errorf("%d bytes at byte %d are outside the stream of %d bytes", length, offset, layout.Size())
	}
	cut := &window{writer: w, position: 0, start: offset, end: offset + length}
	err := e.writeFrom(ctx, cut, layout)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func (e *Encoder) writeFrom(ctx context.Context, cut *window, layout *Layout) error {
	if cut.start == cut.end {
		return nil
	}
	if _, err := cut.Write(e.head); err != nil {
		return err
	}
	if cut.start < layout.end*sector {
		// The last group that starts at or before the offset.
		first := sort.Search(len(layout.starts), func(i int) bool { return int64(layout.starts[i])*sector > cut.start }) - 1
		first = max(first, 0)
		again := newLayout(e.size)
		copy(again.tables, layout.tables[:first])
		copy(again.starts, layout.starts[:first])
		again.end = int64(layout.starts[first])
		cut.position = again.end * sector
		if _, err := e.write(ctx, cut, again, first, layout); err != nil {
			return err
		}
	}
	cut.position = layout.end * sector
	_, err := cut.Write(e.tail(layout))
	return err
}

// window writes what is between two positions.
type window struct {
	writer               io.Writer
	position, start, end int64
}

// Write returns errEnough when the end is reached.
func (w *window) Write(p []byte) (int, error) {
	from, to := max(w.start-w.position, 0), min(w.end-w.position, int64(len(p)))
	w.position += int64(len(p))
	if from < to {
		if _, err := w.writer.Write(p[from:to]); err != nil {
			return 0, err
		}
	}
	if w.position >= w.end {
		return len(p), errEnough
	}
	return len(p), nil
}
