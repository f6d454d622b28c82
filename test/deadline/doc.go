// Package deadline bounds waits by a budget that an overloaded machine spends more slowly. A constant limit fails on a machine on which
// ten processes share two cores, although nothing is wrong; a limit that fits such a machine makes every real failure wait that long.
//
//	err := deadline.Wait(ctx, "the template is ready", time.Minute, func(ctx context.Context) error { … })
//
// Time is charged to the budget in the proportion of the machine that a process can expect: at two cores and eight runnable tasks, a
// quarter of it. A wait takes at most MaxStretch times its limit. Where the load cannot be read, time is charged in full.
//
// An error of a wait names what was waited for, the limit, how long the wait really was, and the last complaint. Errors are
// context.DeadlineExceeded, too.
package deadline
