package supervisor

import (
	"crypto/sha256"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// quarantined is how many domains are remembered.
const quarantined = 1024

// How long a domain is kept from libvirt: each time that it ends a worker when it is
// tried again, twice as long.
const (
	firstQuarantine = time.Minute
	maxQuarantine   = time.Hour
)

// quarantine remembers the domains on which workers died. It lets each of them be
// tried again after a while: what ended the worker may have been somebody else, such
// as the kernel when memory runs out, and libvirt may have been replaced.
type quarantine struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	domains *lru.Cache
}

// sentence is a domain's.
type sentence struct {
	until time.Time
	// served is how long it was kept away the last time.
	served time.Duration
}

// verdict is what becomes of a domain.
type verdict int

const (
	// free is a domain that has done nothing.
	free verdict = iota
	// held is one that is not tried.
	held
	// probation is one that may be tried, alone and once; the quarantine has to be told
	// what came of it.
	probation
)

func newQuarantine(clock clock.PassiveClock) *quarantine {
	return &quarantine{clock: clock, domains: lru.New(quarantined)}
}

// judge says what becomes of a domain, and how long it is held still. Only one caller
// gets a domain on probation; to all others it is held.
func (q *quarantine) judge(xml string) (verdict, time.Duration) {
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
	s := found.(sentence)
	if left := s.until.Sub(q.clock.Now()); left > 0 {
		return held, left
	}
	// Should nobody tell what came of it, it is tried again after as long as before.
	s.until = q.clock.Now().Add(s.served)
	q.domains.Add(key, s)
	return probation, 0
}

// add holds a domain, for longer than the last time, and says for how long.
func (q *quarantine) add(xml string) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := sha256.Sum256([]byte(xml))
	period := firstQuarantine
	if found, ok := q.domains.Get(key); ok {
		period = min(2*found.(sentence).served, maxQuarantine)
	}
	q.domains.Add(key, sentence{until: q.clock.Now().Add(period), served: period})
	return period
}

// release forgets a domain.
func (q *quarantine) release(xml string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.domains.Remove(sha256.Sum256([]byte(xml)))
}

// postpone lets a domain on probation be tried again soon: nothing came of it.
func (q *quarantine) postpone(xml string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := sha256.Sum256([]byte(xml))
	if found, ok := q.domains.Get(key); ok {
		s := found.(sentence)
		s.until = q.clock.Now()
		q.domains.Add(key, s)
	}
}

func (q *quarantine) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.domains.Len()
}
