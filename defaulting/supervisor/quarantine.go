package supervisor

import (
	"crypto/sha256"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// quarantined is the maximum number of domains in quarantine.
const quarantined = 1024

// How long a domain is not passed to libvirt. The period doubles each time the domain ends a
// worker again.
const (
	firstQuarantine = time.Minute
	maxQuarantine   = time.Hour
)

// quarantine stores the domains on which workers died. Each of them may be tried again after a
// while: the cause may have been another one, such as the kernel running out of memory, and
// libvirt may have been replaced.
type quarantine struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	domains *lru.Cache
}

// entry is the quarantine of one domain.
type entry struct {
	until time.Time
	// period is the length of the last period.
	period time.Duration
}

// decision is what to do with a domain.
type decision int

const (
	// free is a domain that is not in quarantine.
	free decision = iota
	// held is a domain that is not tried.
	held
	// probation is a domain that may be tried once, alone. The caller must report the result to
	// the quarantine.
	probation
)

func newQuarantine(clock clock.PassiveClock) *quarantine {
	return &quarantine{clock: clock, domains: lru.New(quarantined)}
}

// decide returns the decision about a domain, and the remaining period if it is held. Only one
// caller gets probation; all others get held.
func (q *quarantine) decide(xml string) (decision, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.domains.Len() == 0 {
		return free, 0
	}
	key := sha256.Sum256([]byte(xml))
	found, ok := q.domains.Get(key)
	if !ok {
		return free, 0
	}
	s := found.(entry)
	if left := s.until.Sub(q.clock.Now()); left > 0 {
		return held, left
	}
	// If no result is reported, the domain is tried again after the same period.
	s.until = q.clock.Now().Add(s.period)
	q.domains.Add(key, s)
	return probation, 0
}

// add quarantines a domain for longer than the last time, and returns the period.
func (q *quarantine) add(xml string) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := sha256.Sum256([]byte(xml))
	period := firstQuarantine
	if found, ok := q.domains.Get(key); ok {
		period = min(2*found.(entry).period, maxQuarantine)
	}
	q.domains.Add(key, entry{until: q.clock.Now().Add(period), period: period})
	return period
}

// release removes a domain from the quarantine.
func (q *quarantine) release(xml string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.domains.Remove(sha256.Sum256([]byte(xml)))
}

// postpone permits a domain on probation to be tried again at once: the attempt had no result.
func (q *quarantine) postpone(xml string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := sha256.Sum256([]byte(xml))
	if found, ok := q.domains.Get(key); ok {
		s := found.(entry)
		s.until = q.clock.Now()
		q.domains.Add(key, s)
	}
}

func (q *quarantine) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.domains.Len()
}
