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

// grace is how long after its deadline an evaluation may take to notice. One that
// takes longer is left behind: the request goes on without it. It is generous, because
// a busy machine must not make a good policy look stuck.
const grace = 100 * time.Millisecond

// Options are those of an Evaluator.
type Options struct {
	// Workers is how many policies are evaluated at a time, over all requests;
	// GOMAXPROCS when 0.
	Workers int
	// Deadline ends the evaluation of all policies of one request; DefaultDeadline
	// when 0. An answer can come 100 ms later, so it should be at least as much shorter
	// than the webhook's timeout.
	Deadline time.Duration
	// Quarantine says when policies are quarantined.
	Quarantine QuarantineOptions
	// Observe, if given, is called for every evaluation before Evaluate returns, by
	// the goroutine that called it.
	Observe func(Evaluation)
	// OnQuarantine, if given, is called when a quarantine begins, begins again after a
	// trial, or ends. It must not block.
	OnQuarantine func(Quarantine)
	// Clock is what quarantines go by; the real one when nil.
	Clock clock.PassiveClock
	// CPUTime is how much CPU time the process has used, if that is known; nil asks the
	// operating system.
	CPUTime func() (time.Duration, bool)
}

// Evaluator evaluates policies within bounds. It is safe for concurrent use.
//
// An evaluation that does not end although it was cancelled is left behind on its
// goroutine, and its policy is not evaluated again until it ends. While the process gets
// too little CPU time that is not held against the policy, so the number of these
// goroutines is limited as well: from maximumBehind for each worker on, one that is left
// behind keeps its place among the workers until it ends.
type Evaluator struct {
	options Options
	records records
	// tokens holds one for each evaluating goroutine that is not left behind, and for those
	// that are beyond the limit.
	tokens chan struct{}
	// behind is how many are left behind.
	behind atomic.Int64
}

// maximumBehind is how many goroutines for each worker may be left behind beside the workers.
const maximumBehind = 4

// leave counts an evaluation that is left behind, and reports whether it keeps its token.
func (e *Evaluator) leave() bool {
	return e.behind.Add(1) > int64(maximumBehind*cap(e.tokens))
}

// NewEvaluator returns an evaluator. It has no goroutines of its own: nothing has to
// be closed.
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

// Keep forgets what is known of versions of policies that are not in a set. Who
// publishes sets calls it after each, or the memory of old versions is never freed.
func (e *Evaluator) Keep(s *Set) { e.records.keep(s.Entries()) }

// Statistics returns those of one version of a policy; none when it has not been
// evaluated.
func (e *Evaluator) Statistics(name, digest string) Statistics {
	if known := e.records.load()[version{name, digest}]; known != nil {
		return known.statistics()
	}
	return Statistics{}
}

// Quarantined returns the quarantine of a policy, whatever its version.
func (e *Evaluator) Quarantined(name string) (Quarantine, bool) {
	for key, known := range e.records.load() {
		if key.name != name {
			continue
		}
		if q := known.quarantine(); q != nil {
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
