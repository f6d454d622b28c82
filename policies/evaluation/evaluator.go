package evaluation

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/vmstencil/stencil/rego"
)

// DefaultDeadline is Options.Deadline when it is not given.
const DefaultDeadline = 3 * time.Second

// grace is the time after its deadline in which an evaluation has to stop. One that
// takes longer is left behind: the request continues without it. The value is
// generous, so that policies on a busy host are not treated as stuck.
const grace = 100 * time.Millisecond

// Options are the options of an Evaluator.
type Options struct {
	// Workers is the number of policies that are evaluated at the same time, over all
	// requests; GOMAXPROCS if 0.
	Workers int
	// Deadline ends the evaluation of all policies of one request; DefaultDeadline if
	// 0. Evaluate can return 100 ms later, so Deadline should be shorter than the
	// webhook's timeout by at least that.
	Deadline time.Duration
	// Quarantine specifies when policies are quarantined.
	Quarantine QuarantineOptions
	// Observe, if set, is called for every evaluation before Evaluate returns, by the
	// goroutine that called Evaluate.
	Observe func(Evaluation)
	// OnQuarantine, if set, is called when a quarantine begins, begins again after a
	// trial, or ends. It must not block.
	OnQuarantine func(Quarantine)
	// Clock is the clock for quarantines; the real clock if nil.
	Clock clock.PassiveClock
	// CPUTime returns the CPU time that the process has used, and whether it is
	// available; if nil, it is read from the operating system.
	CPUTime func() (time.Duration, bool)
}

// Evaluator evaluates policies within limits. It is safe for concurrent use.
//
// An evaluation that does not end although it was cancelled is left behind on its
// goroutine, and its policy is not evaluated again until it ends. While the process
// receives too little CPU time, this does not count against the policy. The number of
// these goroutines is therefore limited as well: beyond maximumBehind for each worker,
// an evaluation that is left behind retains its token until it ends.
type Evaluator struct {
	options Options
	records records
	// tokens holds one token for each evaluating goroutine that is not left behind, and for
	// each one beyond the limit.
	tokens chan struct{}
	// behind is the number of goroutines that are left behind.
	behind atomic.Int64
}

// maximumBehind is the number of goroutines for each worker that may be left behind
// without a token.
const maximumBehind = 4

// leave counts an evaluation that is left behind, and reports whether it retains its
// token.
func (e *Evaluator) leave() bool {
	return e.behind.Add(1) > int64(maximumBehind*cap(e.tokens))
}

// NewEvaluator returns an evaluator. It has no goroutines of its own and does not have
// to be closed.
func NewEvaluator(o Options) *Evaluator {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Deadline <= 0 {
		o.Deadline = DefaultDeadline
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.CPUTime == nil {
		o.CPUTime = processTime
	}
	o.Quarantine = o.Quarantine.withDefaults()
	return &Evaluator{options: o, tokens: make(chan struct{}, o.Workers)}
}

// Evaluate evaluates policies for one request, and returns when all have a result or
// the deadline has passed. The order of the decision is that of the entries.
func (e *Evaluator) Evaluate(ctx context.Context, entries []Entry, in *rego.Input) Decision {
	if len(entries) == 0 {
		return Decision{}
	}
	ctx, cancel := context.WithTimeout(ctx, e.options.Deadline)
	defer cancel()

	b := newBatch(ctx, e, entries, in)
	b.evaluate()

	decision := Decision{Evaluations: b.evaluations}
	for i := range entries {
		decision.merge(&entries[i], &b.results[i], &b.evaluations[i])
		if e.options.Observe != nil {
			e.options.Observe(b.evaluations[i])
		}
	}
	return decision
}

// Retain removes the state of versions of policies that are not in a set. The publisher
// of sets calls it after each new set, otherwise the memory of old versions is never
// freed.
func (e *Evaluator) Retain(s *Set) { e.records.retain(s.Entries()) }

// Statistics returns the statistics of one version of a policy; empty if it has not
// been evaluated.
func (e *Evaluator) Statistics(name, digest string) Statistics {
	if record := e.records.load()[version{name, digest}]; record != nil {
		return record.statistics()
	}
	return Statistics{}
}

// Quarantined returns the quarantine of a policy, whatever its version.
func (e *Evaluator) Quarantined(name string) (Quarantine, bool) {
	for key, record := range e.records.load() {
		if key.name != name {
			continue
		}
		if q := record.quarantine(); q != nil {
			return *q, true
		}
	}
	return Quarantine{}, false
}

func (e *Evaluator) announce(q *Quarantine) {
	if q != nil && e.options.OnQuarantine != nil {
		e.options.OnQuarantine(*q)
	}
}
