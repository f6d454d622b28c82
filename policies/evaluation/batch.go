package evaluation

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/vmstencil/stencil/rego"
)

// share is the number of policies of one request for each additional worker.
const share = 8

// attemptTime is how long a request evaluates policies itself. It is longer only by the
// attempt that has begun.
const attemptTime = 5 * time.Millisecond

// batch is the evaluation of one request's policies: workers evaluate one policy after
// the other, and the goroutine of the request watches their deadlines. A request with few
// policies first attempts them itself: most of them need less time than a worker to begin.
type batch struct {
	evaluator *Evaluator
	ctx       context.Context
	entries   []Entry
	records   []*record
	input     *rego.Input
	done      chan struct{} // closed when no workers are left
	// began and cpuTime are the wall clock time and the CPU time when the first worker
	// began.
	began   time.Time
	cpuTime time.Duration

	lock sync.Mutex
	// results and evaluations have the order of entries. An evaluation without an
	// Result has not ended.
	results     []rego.Result
	evaluations []Evaluation
	// todo are the indices of entries that no worker has taken.
	todo   []int
	trials []int // indices of entries whose evaluation is a trial; rarely any
	// attempted are the indices of entries whose attempt decided nothing.
	attempted []int
	// workers are the workers that have neither ended nor been left behind.
	workers []*worker

	// firstTimeout is the shortest time after the start at which an evaluation can be
	// overdue.
	firstTimeout time.Duration
}

// worker evaluates one policy after the other. Its fields are guarded by the batch's
// lock.
type worker struct {
	busy    bool
	entry   int
	trial   bool
	began   time.Time
	overdue time.Time // when it is left behind
	// abandoned is true if the worker was left behind, lost if this counts against the
	// policy, and holds if the worker retains its token.
	abandoned, lost, holds bool
}

func newBatch(ctx context.Context, e *Evaluator, entries []Entry, in *rego.Input) *batch {
	b := &batch{
		evaluator:   e,
		ctx:         ctx,
		entries:     entries,
		records:     e.records.of(entries),
		input:       in,
		done:        make(chan struct{}),
		results:     make([]rego.Result, len(entries)),
		evaluations: make([]Evaluation, len(entries)),
		todo:        make([]int, 0, len(entries)),
	}
	now := e.options.Clock.Now()
	var last []int
	for i := range entries {
		record := b.records[i]
		if bound := perObject(entries[i].Policy, in); bound != entries[i].Policy {
			if &b.entries[0] == &entries[0] {
				b.entries = slices.Clone(entries)
			}
			b.entries[i].Policy = bound
		}
		b.evaluations[i] = Evaluation{Policy: record.name, Digest: record.digest, Enforcement: entries[i].enforcement(), Data: dataOf(b.entries[i].Policy)}
		admitted, trial := record.admit(now)
		switch {
		case !admitted:
			record.skipped.Add(1)
			b.evaluations[i].Result = ResultQuarantined
			b.evaluations[i].Err = errQuarantined(record.quarantine())
		case record.troubled.Load():
			// Policies that were slow before are evaluated last, so that they do not
			// use up the time of the others.
			last = append(last, i)
		default:
			b.todo = append(b.todo, i)
		}
		if trial {
			b.trials = append(b.trials, i)
		}
	}
	b.todo = append(b.todo, last...)
	b.firstTimeout = e.options.Deadline
	for _, i := range b.todo {
		b.firstTimeout = min(b.firstTimeout, entries[i].timeout())
	}
	b.firstTimeout += grace
	return b
}

// evaluate returns when the evaluation of every policy has ended or was given up.
func (b *batch) evaluate() {
	if len(b.todo) <= share {
		b.attempt()
	}
	if len(b.todo) > 0 && b.start() {
		b.watch()
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	for i := range b.evaluations {
		if b.evaluations[i].Result == "" {
			b.giveUp(i)
		}
	}
}

// attempt evaluates policies for a short time in the goroutine of the request, and leaves
// those that need more to the workers, also those that needed more before.
func (b *batch) attempt() {
	if !b.takeToken() {
		return
	}
	defer func() { <-b.evaluator.tokens }()
	began := time.Now()
	var left []int
	for _, i := range b.todo {
		policy, attempts := b.entries[i].Policy.(attempter)
		switch {
		case !attempts || b.records[i].troubled.Load() || slices.Contains(b.trials, i) || time.Since(began) > attemptTime:
			left = append(left, i)
		case !b.attemptOne(i, policy):
			b.attempted = append(b.attempted, i)
		}
	}
	b.todo = slices.Concat(b.attempted, left)
}

// attemptOne reports whether the attempt has decided. One that panics has not: the worker
// evaluates the policy, and handles its panic.
func (b *batch) attemptOne(i int, policy attempter) (decided bool) {
	w := worker{entry: i, began: time.Now()}
	ctx := &limited{Context: b.ctx, deadline: w.began.Add(b.entries[i].timeout())}
	defer func() {
		ctx.end()
		if recover() != nil {
			decided = false
		}
	}()
	result, decided, err := policy.Attempt(ctx, b.input)
	if !decided {
		return false
	}
	found := resultOf(&result)
	if err != nil {
		found = ResultError
	}
	b.record(&w, result, err, found)
	return true
}

// giveUp records that a policy was not evaluated because the request has ended.
func (b *batch) giveUp(entry int) {
	evaluation := &b.evaluations[entry]
	evaluation.Result, evaluation.Err = ResultError, noResultError(b.ctx)
	if errors.Is(evaluation.Err, context.DeadlineExceeded) {
		evaluation.Result = ResultTimeout
	}
	if slices.Contains(b.trials, entry) {
		b.applyHealth(b.records[entry], void, true)
	}
}

// start waits for a token and starts a worker, and further workers if tokens are idle.
// It returns false if the request has ended before.
func (b *batch) start() bool {
	tokens := b.evaluator.tokens
	select {
	case tokens <- struct{}{}:
	case <-b.ctx.Done():
		return false
	}
	b.began = time.Now()
	b.cpuTime, _ = b.evaluator.options.CPUTime()
	b.workers = make([]*worker, 1, 1+len(b.todo)/share)
	for len(b.workers) < cap(b.workers) && b.takeToken() {
		b.workers = append(b.workers, nil)
	}
	for i := range b.workers {
		b.workers[i] = &worker{}
	}
	for _, w := range slices.Clone(b.workers) {
		go b.work(w)
	}
	return true
}

// takeToken takes a token if one is free.
func (b *batch) takeToken() bool {
	select {
	case b.evaluator.tokens <- struct{}{}:
		return true
	default:
		return false
	}
}

// watch waits for the workers, and leaves behind those that do not stop.
func (b *batch) watch() {
	timer := time.NewTimer(b.firstTimeout)
	defer timer.Stop()
	ended := b.ctx.Done()
	for {
		select {
		case <-b.done:
			return
		case <-timer.C:
			timer.Reset(b.abandon(time.Now()))
		case <-ended:
			ended = nil
			b.end(time.Now().Add(grace))
			timer.Reset(grace)
		}
	}
}

// end removes the policies that have not begun, and sets a time until which the workers
// have to end the others.
func (b *batch) end(overdue time.Time) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.todo = nil
	for _, w := range b.workers {
		if overdue.Before(w.overdue) {
			w.overdue = overdue
		}
	}
}

// abandon leaves behind workers with an overdue policy, and starts workers for the rest
// of their work. It returns how long to wait until the next policy can be overdue.
func (b *batch) abandon(now time.Time) time.Duration {
	b.lock.Lock()
	defer b.lock.Unlock()
	wait := b.firstTimeout
	for _, w := range slices.Clone(b.workers) {
		if !w.busy {
			continue
		}
		if left := w.overdue.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		b.record(w, rego.Result{}, errPolicyTimeout(b.entries[w.entry].timeout()), ResultTimeout)
		w.abandoned, w.holds = true, b.evaluator.leave()
		if record := b.records[w.entry]; b.starved() {
			b.applyHealth(record, void, w.trial)
		} else {
			w.lost = true
			options := &b.evaluator.options
			b.evaluator.announce(record.lose(&options.Quarantine, w.trial, options.Clock.Now()))
		}
		b.remove(w)
		if w.holds {
			b.closeIfDone()
			continue
		}
		if len(b.todo) == 0 {
			b.release()
			continue
		}
		next := &worker{} // with the token of the one left behind
		b.workers = append(b.workers, next)
		go b.work(next)
	}
	return wait
}

// work evaluates policies until none is left.
func (b *batch) work(w *worker) {
	for b.take(w) {
		result, err := b.evaluateOne(w)
		if !b.finish(w, result, err) {
			return
		}
	}
}

// take assigns the next policy to a worker, or ends the worker.
func (b *batch) take(w *worker) bool {
	b.lock.Lock()
	defer b.lock.Unlock()
	if len(b.todo) == 0 {
		b.remove(w)
		b.release()
		return false
	}
	w.busy, w.entry, w.began = true, b.todo[0], time.Now()
	w.trial = slices.Contains(b.trials, w.entry)
	w.overdue = w.began.Add(b.entries[w.entry].timeout() + grace)
	b.todo = b.todo[1:]
	return true
}

func (b *batch) remove(w *worker) {
	b.workers = slices.DeleteFunc(b.workers, func(other *worker) bool { return other == w })
}

// release returns the token of a removed worker. The caller holds the lock.
func (b *batch) release() {
	<-b.evaluator.tokens
	b.closeIfDone()
}

// closeIfDone ends the wait for workers when none are left. The caller holds the lock.
func (b *batch) closeIfDone() {
	if len(b.workers) == 0 {
		close(b.done)
	}
}

func (b *batch) evaluateOne(w *worker) (result rego.Result, err error) {
	entry := &b.entries[w.entry]
	ctx := &limited{Context: b.ctx, deadline: w.began.Add(entry.timeout())}
	defer func() {
		ctx.end()
		if value := recover(); value != nil {
			result, err = rego.Result{}, &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	if policy, attempts := entry.Policy.(attempter); attempts && slices.Contains(b.attempted, w.entry) {
		return policy.Complete(ctx, b.input)
	}
	return entry.Policy.Evaluate(ctx, b.input)
}

// finish stores the result of a policy. It reports whether the worker continues: one
// that was left behind does not.
func (b *batch) finish(w *worker, result rego.Result, err error) bool {
	b.lock.Lock()
	defer b.lock.Unlock()
	record := b.records[w.entry]
	if w.abandoned {
		b.evaluator.behind.Add(-1)
		if w.holds {
			<-b.evaluator.tokens
		}
		if w.lost {
			record.find()
		}
		return false
	}
	w.busy = false

	found, v := resultOf(&result), passed
	if err != nil {
		if b.ctx.Err() != nil && ended(err) {
			return true // evaluate gives it up
		}
		found, v = failure(err)
		if found == ResultTimeout {
			err = errPolicyTimeout(b.entries[w.entry].timeout())
		}
	}
	b.record(w, result, err, found)
	if found == ResultTimeout && b.starved() {
		v = void
	}
	b.applyHealth(record, v, w.trial)
	return true
}

// applyHealth updates the health in a policy's record. A healthy policy takes no lock.
func (b *batch) applyHealth(record *record, v healthEffect, trial bool) {
	if v == struck || record.troubled.Load() {
		options := &b.evaluator.options
		b.evaluator.announce(record.applyHealth(&options.Quarantine, v, trial, options.Clock.Now()))
	}
}

// starved reports whether the process has received less than half a CPU since the first
// worker began. The durations are not meaningful then.
func (b *batch) starved() bool {
	now, record := b.evaluator.options.CPUTime()
	return record && now-b.cpuTime < time.Since(b.began)/2
}

// failure returns the Result of an evaluation without a result, and its effect on the
// health of the policy.
func failure(err error) (Result, healthEffect) {
	var panicked *PanicError
	switch {
	case errors.As(err, &panicked):
		return ResultError, struck
	case ended(err):
		return ResultTimeout, struck
	default:
		return ResultError, passed
	}
}

// ended reports whether an evaluation was ended by its context.
func ended(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// record stores the result of an evaluation. The caller holds the lock.
func (b *batch) record(w *worker, result rego.Result, err error, found Result) {
	evaluation := &b.evaluations[w.entry]
	evaluation.Result, evaluation.Err = found, err
	evaluation.Duration, evaluation.Truncated = time.Since(w.began), result.Truncated
	b.results[w.entry] = result
	b.records[w.entry].count(found, evaluation.Duration)
}
