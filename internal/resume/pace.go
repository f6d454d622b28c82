package resume

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrSlow means that the source sent too little for too long.
var ErrSlow = errors.New("the source sends too slowly")

// Pace is how slowly a source may send. A source that trickles would occupy what others wait for.
type Pace struct {
	// Slowest is a number of bytes per second; 0 is without a limit.
	Slowest int64
	// Window is the time over which it is measured. Only the time counts in which a reader waits for the source, and not in which it does something with what it has
	// read.
	Window time.Duration
}

// Meter measures the pace of a source. It may be used concurrently.
type Meter struct {
	pace Pace

	mutex  sync.Mutex
	bytes  int64
	waited time.Duration
}

// NewMeter returns a meter.
func NewMeter(pace Pace) *Meter { return &Meter{pace: pace} }

// Add counts bytes that a reader has waited for. It returns ErrSlow at the end of a window in which they were too few.
func (m *Meter) Add(bytes int, waited time.Duration) error {
	if m.pace.Slowest <= 0 {
		return nil
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.bytes += int64(bytes)
	if m.waited += waited; m.waited < m.pace.Window {
		return nil
	}
	rate := float64(m.bytes) / m.waited.Seconds()
	m.bytes, m.waited = 0, 0
	if rate < float64(m.pace.Slowest) {
		return &permanent{fmt.Errorf("%w: %.0f bytes per second within %s, and at least %d are required", ErrSlow, rate, m.pace.Window, m.pace.Slowest)}
	}
	return nil
}
