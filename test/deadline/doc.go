// Package deadline bounds waits by a budget that is spent more slowly on an overloaded host. A constant limit fails on a host on which ten processes
// share two cores, although nothing is wrong; a limit that fits such a host makes every real failure wait that long.
//
//	err := deadline.Wait(ctx, "the template is ready", time.Minute, func(ctx context.Context) error { … })
//
// Time is charged to the budget in proportion to the share of the host that a process can expect: at two cores and eight runnable tasks, a quarter of
// it. A wait takes at most MaxStretch times its limit. Where the load cannot be read, time is charged in full.
//
// An error of a wait contains the description of the wait, the limit, the real duration, and the last error of the check. Errors are also
// context.DeadlineExceeded.
package deadline
