package deadline

import "time"

// MaxStretch is the largest factor by which a wait can exceed its limit.
const MaxStretch = 6

// Budget is the time that a wait may take. It is not safe for concurrent use.
type Budget struct {
	limit, spent, waited time.Duration
}

// NewBudget returns an unspent budget.
func NewBudget(limit time.Duration) *Budget { return &Budget{limit: limit} }

// Charge spends time that has passed, during which this number of tasks were runnable on these cores. It is spent in full when every
// task had a core, and when the numbers are unknown, that is not positive.
func (b *Budget) Charge(passed time.Duration, load Load) {
	if passed <= 0 {
		return
	}
	b.waited += passed
	b.spent += max(time.Duration(float64(passed)*load.share()), passed/MaxStretch)
}

// Exceeded reports whether the budget is spent, at the latest after MaxStretch times its limit.
func (b *Budget) Exceeded() bool { return b.spent >= b.limit }

// Waited is the time that has passed.
func (b *Budget) Waited() time.Duration { return b.waited }

// Load is how busy a host is. The zero value is unknown.
type Load struct {
	// Runnable is the number of tasks that run or could run.
	Runnable int
	// Cores is the number of cores that they share.
	Cores int
}

// share is the part of a core that a task can expect, between 0 and 1.
func (l Load) share() float64 {
	if l.Runnable <= l.Cores || l.Cores <= 0 {
		return 1
	}
	return float64(l.Cores) / float64(l.Runnable)
}
