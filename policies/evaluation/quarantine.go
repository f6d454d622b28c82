package evaluation

import "time"

// QuarantineOptions specify when a policy is quarantined, and for how long.
//
// A policy receives a strike when it exceeds its own deadline or panics. As many
// consecutive strikes as Strikes within Window put it into quarantine for First; then
// one evaluation is tried. If it passes, the quarantine ends; if it is a strike, the
// next period is twice as long, up to Max. After Max without quarantine a policy
// starts with First again.
//
// An evaluation that continues after its deadline although it was cancelled puts the
// policy into quarantine at once, at least until the evaluation ends.
//
// If the process received less than half a CPU while the request was evaluated,
// because its node is overloaded or its limit throttles it, a timeout is not a
// strike.
type QuarantineOptions struct {
	Strikes    int
	Window     time.Duration
	First, Max time.Duration
}

// The defaults of QuarantineOptions.
//
// The strikes are consecutive, because one success shows that the policy works for
// requests of other users: a user who can send requests that are slow to evaluate
// should not be able to disable a policy.
const (
	DefaultQuarantineStrikes = 5
	DefaultQuarantineWindow  = time.Minute
	DefaultQuarantineFirst   = 10 * time.Second
	DefaultQuarantineMax     = 10 * time.Minute
)

func (o QuarantineOptions) withDefaults() QuarantineOptions {
	if o.Strikes <= 0 {
		o.Strikes = DefaultQuarantineStrikes
	}
	if o.Window <= 0 {
		o.Window = DefaultQuarantineWindow
	}
	if o.First <= 0 {
		o.First = DefaultQuarantineFirst
	}
	if o.Max <= 0 {
		o.Max = max(DefaultQuarantineMax, o.First)
	}
	return o
}

// period returns the duration of the nth consecutive quarantine.
func (o QuarantineOptions) period(nth int) time.Duration {
	period := o.First
	for ; nth > 1 && period < o.Max; nth-- {
		period *= 2
	}
	return min(period, o.Max)
}

// Quarantine is the quarantine of one version of a policy.
type Quarantine struct {
	Policy, Digest string
	// Until is the time at which an evaluation will be tried.
	Until time.Time
	// Times is the number of consecutive quarantines, including this one.
	Times int
	// Stuck is the number of evaluations that have not ended although they were
	// cancelled.
	Stuck int
	// Ended is true in a call of Options.OnQuarantine when the quarantine has ended.
	Ended bool
}

// healthEffect is the effect of one evaluation on the policy's health.
type healthEffect int

const (
	// passed: it ended in time, with a result or an error.
	passed healthEffect = iota
	// struck: it exceeded its own deadline, or panicked.
	struck
	// void: it was ended by another deadline, or received too little CPU time.
	void
)

// health decides on the quarantine of one version of a policy. The caller holds its
// lock. Methods that return a *Quarantine do so when it begins or ends.
type health struct {
	strikes     int
	firstStrike time.Time
	// until is when the current quarantine ends, zero when there is none.
	until time.Time
	// times is the number of consecutive quarantines, released the time at which the
	// last one ended.
	times    int
	released time.Time
	// trial is true while the evaluation after a quarantine runs.
	trial bool
	stuck int
}

// admit reports whether the policy may be evaluated, and whether that is a trial. The
// effect of a trial must be passed to apply.
func (h *health) admit(now time.Time) (admitted, trial bool) {
	switch {
	case h.stuck > 0:
		return false, false
	case h.until.IsZero():
		return true, false
	case now.Before(h.until) || h.trial:
		return false, false
	default:
		h.trial = true
		return true, true
	}
}

// apply applies the effect of an admitted evaluation.
func (h *health) apply(o *QuarantineOptions, v healthEffect, trial bool, now time.Time) *Quarantine {
	if trial {
		h.trial = false
		switch v {
		case passed:
			h.strikes, h.until, h.released = 0, time.Time{}, now
			return &Quarantine{Times: h.times, Ended: true}
		case struck:
			return h.begin(o, now)
		}
		return nil
	}
	if !h.until.IsZero() {
		return nil // the evaluation began before the quarantine, which only a trial ends
	}
	switch v {
	case passed:
		h.strikes = 0
		if h.times > 0 && now.Sub(h.released) >= o.Max {
			h.times = 0
		}
	case struck:
		if h.strikes == 0 || now.Sub(h.firstStrike) > o.Window {
			h.strikes, h.firstStrike = 0, now
		}
		if h.strikes++; h.strikes >= o.Strikes {
			return h.begin(o, now)
		}
	}
	return nil
}

// lose records an evaluation that does not end; find records its end.
func (h *health) lose(o *QuarantineOptions, trial bool, now time.Time) *Quarantine {
	h.stuck++
	if trial {
		h.trial = false
	} else if !h.until.IsZero() {
		return nil
	}
	return h.begin(o, now)
}

func (h *health) find() { h.stuck-- }

func (h *health) begin(o *QuarantineOptions, now time.Time) *Quarantine {
	h.strikes = 0
	h.times++
	h.until = now.Add(o.period(h.times))
	return h.quarantine()
}

// quarantine returns the current quarantine, nil if there is none.
func (h *health) quarantine() *Quarantine {
	if h.until.IsZero() && h.stuck == 0 {
		return nil
	}
	return &Quarantine{Until: h.until, Times: h.times, Stuck: h.stuck}
}

// sound reports whether there is no state to retain.
func (h *health) sound() bool {
	return h.strikes == 0 && h.times == 0 && h.stuck == 0 && h.until.IsZero()
}
