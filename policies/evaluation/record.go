package evaluation

import (
	"sync"
	"sync/atomic"
	"time"
)

// Statistics are the statistics of one version of a policy since it was first
// evaluated.
type Statistics struct {
	// Count is the number of evaluations, whatever their result.
	Count uint64
	// Timeouts is the number of evaluations that exceeded the policy's own deadline,
	// Errors the number of those that failed otherwise.
	Timeouts, Errors uint64
	// Skipped is the number of requests for which the policy was in quarantine; Count
	// does not include them.
	Skipped uint64
	// P50Microseconds and P99Microseconds are quantiles of the durations of
	// evaluations, with an error of at most 6.25 % and rounded up to whole
	// microseconds; 0 without evaluations.
	P50Microseconds, P99Microseconds int64
}

// record is the state of one version of a policy in an Evaluator.
type record struct {
	name, digest string

	durations                 histogram
	timeouts, errors, skipped atomic.Uint64

	// troubled is false while health is sound, so that a healthy policy takes no lock.
	troubled atomic.Bool
	lock     sync.Mutex
	health   health
}

func (r *record) statistics() Statistics {
	durations := r.durations.snapshot()
	return Statistics{
		Count:           durations.count,
		Timeouts:        r.timeouts.Load(),
		Errors:          r.errors.Load(),
		Skipped:         r.skipped.Load(),
		P50Microseconds: microseconds(durations.quantile(50)),
		P99Microseconds: microseconds(durations.quantile(99)),
	}
}

func microseconds(d time.Duration) int64 {
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}

// count adds an evaluation to the statistics.
func (r *record) count(o Result, duration time.Duration) {
	r.durations.add(duration)
	switch o {
	case ResultError:
		r.errors.Add(1)
	case ResultTimeout:
		r.timeouts.Add(1)
	}
}

func (r *record) admit(now time.Time) (admitted, trial bool) {
	if !r.troubled.Load() {
		return true, false
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.health.admit(now)
}

func (r *record) applyHealth(o *QuarantineOptions, v healthEffect, trial bool, now time.Time) *Quarantine {
	return r.change(func(h *health) *Quarantine { return h.apply(o, v, trial, now) })
}

func (r *record) lose(o *QuarantineOptions, trial bool, now time.Time) *Quarantine {
	return r.change(func(h *health) *Quarantine { return h.lose(o, trial, now) })
}

func (r *record) find() {
	r.change(func(h *health) *Quarantine { h.find(); return nil })
}

func (r *record) change(apply func(*health) *Quarantine) *Quarantine {
	r.lock.Lock()
	defer r.lock.Unlock()
	quarantine := apply(&r.health)
	r.troubled.Store(!r.health.sound())
	return r.sign(quarantine)
}

func (r *record) quarantine() *Quarantine {
	if !r.troubled.Load() {
		return nil
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.sign(r.health.quarantine())
}

func (r *record) sign(q *Quarantine) *Quarantine {
	if q != nil {
		q.Policy, q.Digest = r.name, r.digest
	}
	return q
}

// records are the records of all versions of policies that were evaluated since the
// last call of keep. Reading takes no lock: the map is replaced when a version is
// added.
type records struct {
	current atomic.Pointer[map[version]*record]
	lock    sync.Mutex
}

// version identifies one version of a policy.
type version struct{ name, digest string }

func (r *records) load() map[version]*record {
	if current := r.current.Load(); current != nil {
		return *current
	}
	return nil
}

// of returns the records of entries, in the same order.
func (r *records) of(entries []Entry) []*record {
	found := make([]*record, len(entries))
	current, missing := r.load(), 0
	for i := range entries {
		if found[i] = current[versionOf(entries[i].Policy)]; found[i] == nil {
			missing++
		}
	}
	if missing > 0 {
		r.add(entries, found)
	}
	return found
}

func versionOf(p Policy) version { return version{p.Name(), p.Digest()} }

func (r *records) add(entries []Entry, found []*record) {
	r.lock.Lock()
	defer r.lock.Unlock()
	current := r.load()
	next := make(map[version]*record, len(current)+len(entries))
	for key, record := range current {
		next[key] = record
	}
	for i := range entries {
		key := versionOf(entries[i].Policy)
		if next[key] == nil {
			next[key] = &record{name: key.name, digest: key.digest}
		}
		found[i] = next[key]
	}
	r.current.Store(&next)
}

// retain removes versions that are not among entries.
func (r *records) retain(entries []Entry) {
	r.lock.Lock()
	defer r.lock.Unlock()
	current := r.load()
	next := make(map[version]*record, len(entries))
	for i := range entries {
		key := versionOf(entries[i].Policy)
		if record := current[key]; record != nil {
			next[key] = record
		}
	}
	r.current.Store(&next)
}
