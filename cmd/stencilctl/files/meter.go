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
}

// interval is the time between two updates of the line.
const interval = 200 * time.Millisecond

// NewMeter returns a meter of so many bytes.
func NewMeter(streams cli.Streams, what string, total int64) *Meter {
	return &Meter{streams: streams, what: what, total: total}
}

// Add adds bytes that were done.
func (m *Meter) Add(n int64) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.show(m.done + n)
}

// To sets the number of bytes that are done. It never decreases: calls are concurrent, and may be late.
func (m *Meter) To(done int64) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.show(max(m.done, done))
}

// show is called with the mutex locked.
func (m *Meter) show(done int64) {
	m.done = done
	if now := time.Now(); m.streams.Prompt != nil && now.Sub(m.shown) >= interval {
		m.shown = now
		const width = 30
		filled := int(m.done * width / max(m.total, 1))
		fmt.Fprintf(m.streams.Err, "\r%s [%s%s] %3d %%", m.what, strings.Repeat("#", min(filled, width)), strings.Repeat(".", max(width-filled, 0)), min(m.done*100/max(m.total, 1), 100))
	}
}

// End removes the line.
func (m *Meter) End() {
	if !m.shown.IsZero() {
		fmt.Fprint(m.streams.Err, "\r\x1b[K")
	}
}
