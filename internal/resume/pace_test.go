package resume

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"
)

func TestAMeterKnowsASourceThatIsTooSlow(t *testing.T) {
	type step struct {
		bytes  int
		waited time.Duration
		slow   bool
	}
	for name, steps := range map[string][]step{
		"fast enough":                   {{100, time.Second, false}, {900, 9 * time.Second, false}},
		"too slow":                      {{100, 9 * time.Second, false}, {0, time.Second, true}},
		"slow at first, fast in all":    {{1, 9 * time.Second, false}, {999, time.Second, false}},
		"fast once, slow in the window": {{100000, 10 * time.Second, false}, {10, 10 * time.Second, true}},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMeter(Pace{Slowest: 100, Window: 10 * time.Second})
			for i, each := range steps {
				if err := m.Add(each.bytes, each.waited); errors.Is(err, ErrSlow) != each.slow {
					t.Errorf("step %d: %v", i, err)
				}
			}
		})
	}
	if err := NewMeter(Pace{}).Add(0, time.Hour); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

// trickle sends a byte at a time, and waits before each.
type trickle struct{ io.Reader }

func (r *trickle) Read(p []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return r.Reader.Read(p[:1])
}
func (r *trickle) Close() error { return nil }

// TestATrickleEnds reads a source that sends without a pause, so that it never stalls, and too slowly. A reader that is slow itself ends no source.
func TestATrickleEnds(t *testing.T) {
	content := make([]byte, 1<<20)
	opened := 0
	reader := NewReader(t.Context(), Content{
		Open: func(context.Context, int64) (io.ReadCloser, int64, error) {
			opened++
			return &trickle{bytes.NewReader(content)}, 0, nil
		},
		Size: int64(len(content)), Stall: time.Minute, Pace: Pace{Slowest: 1 << 20, Window: 20 * time.Millisecond},
	})
	if n, err := io.Copy(io.Discard, reader); !errors.Is(err, ErrSlow) || n >= int64(len(content)) || opened != 1 {
		t.Errorf("%d bytes, opened %d times: %v", n, opened, err)
	}
	quick := NewReader(t.Context(), Content{
		Open: func(context.Context, int64) (io.ReadCloser, int64, error) {
			return io.NopCloser(bytes.NewReader(content)), 0, nil
		},
		Size: int64(len(content)), Pace: Pace{Slowest: 1 << 20, Window: 20 * time.Millisecond},
	})
	buffer := make([]byte, 256<<10)
	for {
		_, err := quick.Read(buffer)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Millisecond) // of the reader
	}
}
