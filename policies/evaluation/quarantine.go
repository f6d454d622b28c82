package evaluation

import "time"

// QuarantineOptions say when a policy is quarantined, and for how long.
//
// A policy is struck when it runs into its own deadline or panics. Strikes in a row
// within Window put it into quarantine for First; then one evaluation is tried. If
// that passes, the policy is free; if it is struck, the next period is twice as long,
// up to Max. A policy that stays out of quarantine for Max begins with First again.
//
// An evaluation that goes on after its deadline although it was cancelled puts the
// policy into quarantine at once, at least until it ends.
//
// When the process got less than half a CPU while the request was evaluated, because
// its node is overloaded or its limit throttles it, deadlines say nothing about
// policies: there are timeouts then, but no strikes.
type QuarantineOptions struct {
	Strikes    int
	Window     time.Duration
	First, Max time.Duration
}

// The defaults of QuarantineOptions.
//
// Five in a row, because one success shows that the policy works for other people's
// requests: who can send a request that is slow to judge should not be able to take a
// policy out of service.
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

// period is how long the nth quarantine in a row lasts.
func (o QuarantineOptions) period(nth int) time.Duration {
	period := o.First
	for ; nth > 1 && period < o.Max; nth-- {
		period *= 2
	}
	return min(period, o.Max)
}

// Quarantine is that of one version of a policy.
type Quarantine struct {
	Policy, Digest string
	// Until is when an evaluation will be tried.
	Until time.Time
	// Times is how many quarantines in a row this is.
	Times int
	// Stuck is how many evaluations have not ended although they were cancelled.
	Stuck int
	// Ended says, to Options.OnQuarantine, that the policy is free again.
	Ended bool
}

// verdict is what one evaluation says about the policy's health.
type verdict int

const (
	// passed: it ended in time, with a result or an error.
	passed verdict = iota
	// struck: it ran into its own deadline, or panicked.
	struck
	// void: it was ended by somebody else's deadline, or had no CPU.
	void
)

// health decides on the quarantine of one version of a policy. The caller holds its
// lock. Methods that return a *Quarantine do so when it begins or ends.
type health struct {
	strikes     int
	firstStrike time.Time
	// until is when the current quarantine ends, zero when there is none.
	until time.Time
	// times is how many quarantines in a row there were, released when the last one
	// ended.
	times    int
	released time.Time
	// trial says that an evaluation after a quarantine is going on.
	trial bool
	stuck int
}

// admit says whether the policy may be evaluated, and whether that is a trial, the
// verdict on which must be passed to settle.
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

// settle takes the verdict on an evaluation that was admitted.
func (h *health) settle(o *QuarantineOptions, v verdict, trial bool, now time.Time) *Quarantine {
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
		return nil // it began before the quarantine, which only a trial ends
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

// lose takes note of an evaluation that does not end; find of its end.
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

// quarantine is the current one, nil when there is none.
func (h *health) quarantine() *Quarantine {
	if h.until.IsZero() && h.stuck == 0 {
		return nil
	}
	return &Quarantine{Until: h.until, Times: h.times, Stuck: h.stuck}
}

// sound says that nothing is to be remembered.
func (h *health) sound() bool {
	return h.strikes == 0 && h.times == 0 && h.stuck == 0 && h.until.IsZero()
}
