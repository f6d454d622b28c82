package files

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// Meter shows how much was done, in a line on a terminal that it writes again. Elsewhere it shows nothing.
type Meter struct {
	streams cli.Streams
	what    string
	total   int64

	mutex sync.Mutex
	done  int64
	shown time.Time
	// visible is true while the line is on the terminal.
	visible bool
}

// interval is the time between two updates of the line.
const interval = 200 * time.Millisecond

// NewMeter returns a meter of so many bytes, or of other things. A total of 0 is unknown: the line has the number of those that are done.
func NewMeter(streams cli.Streams, what string, total int64) *Meter {
	return &Meter{streams: streams, what: what, total: total}
}

// Add adds what was done.
func (m *Meter) Add(n int64) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.show(m.done + n)
}

// Write implements io.Writer for io.TeeReader and io.MultiWriter: the bytes are done.
func (m *Meter) Write(p []byte) (int, error) {
	m.Add(int64(len(p)))
	return len(p), nil
}

// To sets how much is done. It never decreases: calls are concurrent, and may be late.
func (m *Meter) To(done int64) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.show(max(m.done, done))
}

// show is called with the mutex locked.
func (m *Meter) show(done int64) {
	m.done = done
	now := time.Now()
	if m.streams.Prompt == nil || now.Sub(m.shown) < interval {
		return
	}
	m.shown, m.visible = now, true
	if m.total == 0 {
		fmt.Fprintf(m.streams.Err, "\r%s %d", m.what, m.done)
		return
	}
	const width = 30
	filled := int(m.done * width / m.total)
	fmt.Fprintf(m.streams.Err, "\r%s [%s%s] %3d %%", m.what, strings.Repeat("#", min(filled, width)), strings.Repeat(".", max(width-filled, 0)), min(m.done*100/m.total, 100))
}

// End removes the line. It is shown again when more is done.
func (m *Meter) End() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.visible {
		m.visible = false
		fmt.Fprint(m.streams.Err, "\r\x1b[K")
	}
}
