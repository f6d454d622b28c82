package child

import (
	"fmt"
	"time"
)

// end is how the work of a child on a policy ended, the value of a metric's label.
type end string

const (
	// endAnswered: the child has answered.
	endAnswered end = "answered"
	// endMemory: an allocation failed. endStack: the stack grew too large.
	endMemory, endStack end = "memory", "stack"
	// endTimeout: it took too long.
	endTimeout end = "timeout"
	// endCrashed: the engine crashed.
	endCrashed end = "crashed"
	// endKilled: another process, or the kernel, killed the child.
	endKilled end = "killed"
	// endStarved: the child received too little CPU time.
	endStarved end = "starved"
	// endUnavailable: no child could be started.
	endUnavailable end = "unavailable"
	// endCancelled: the caller did not wait.
	endCancelled end = "cancelled"
)

func ends() []end {
	return []end{endAnswered, endMemory, endStack, endTimeout, endCrashed, endKilled, endStarved, endUnavailable, endCancelled}
}

// problem describes why a policy cannot be compiled, empty if that is not a problem of the policy.
func (p *process) problem(e end, timeout time.Duration) string {
	switch e {
	case endMemory:
		return fmt.Sprintf("compiling it needs more than %d MiB of memory", p.memory>>20)
	case endStack:
		return "compiling it needs too much stack: it is nested too deeply"
	case endTimeout:
		return fmt.Sprintf("it takes too long to compile: more than %s", timeout)
	case endCrashed:
		return "the compiler crashed on it; please report this"
	case endKilled:
		return "the process that compiles it was killed repeatedly; it may need too much memory"
	}
	return ""
}

// failure describes why tests cannot be run, empty if that is not a problem of the policy.
func (p *process) failure(e end, timeout time.Duration) string {
	switch e {
	case endMemory:
		return fmt.Sprintf("the tests need more than %d MiB of memory", p.memory>>20)
	case endStack:
		return "the tests need too much stack"
	case endTimeout:
		return overdueTests(timeout)
	case endCrashed:
		return "the engine crashed on the tests; please report this"
	case endKilled:
		return "the process that runs the tests was killed repeatedly; they may need too much memory"
	}
	return ""
}
