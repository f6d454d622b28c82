package ova

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// meter shows how much was done, in a line on a terminal that it writes again. Elsewhere it shows nothing.
type meter struct {
	streams cli.Streams
	what    string
	total   int64

	mutex sync.Mutex
	done  int64
	shown time.Time
}

// interval is the time between two updates of the line.
const interval = 200 * time.Millisecond

// progress returns a meter of so many bytes.
func progress(streams cli.Streams, what string, total int64) *meter {
	return &meter{streams: streams, what: what, total: total}
}

// add adds bytes that were done.
func (m *meter) add(n int64) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.done += n
	if now := time.Now(); m.streams.Prompt != nil && now.Sub(m.shown) >= interval {
		m.shown = now
		const width = 30
		filled := int(m.done * width / max(m.total, 1))
		fmt.Fprintf(m.streams.Err, "\r%s [%s%s] %3d %%", m.what, strings.Repeat("#", min(filled, width)), strings.Repeat(".", max(width-filled, 0)), min(m.done*100/max(m.total, 1), 100))
	}
}

// end removes the line.
func (m *meter) end() {
	if !m.shown.IsZero() {
		fmt.Fprint(m.streams.Err, "\r\x1b[K")
	}
}
