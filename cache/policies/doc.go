// Package policies caches the active VirtualMachinePolicies, compiled. The webhooks query it for every request.
//
// A reflector of client-go watches policies. Neither the reflector nor a request waits for a compilation: a new or changed
// policy is queued, then compiled and tested by a small pool of workers, each with a timeout: first by a Checker, in a child process (see package child),
// then compiled here. Then a new policyset.Set
// replaces the old one behind an atomic pointer. After the start there is one worker, which leaves the other processors to
// requests.
//
// # Active version
//
// The active version is the one in spec, if it compiles and its tests pass. Otherwise the last good version stays active. It
// is stored in memory, and by the leader in status.lastGood, where replicas that start later read it. If there is none:
//
//   - A policy that does not compile, or that was active before, is broken: it cannot be evaluated, and its failure mode
//     decides about every request that it applies to.
//   - A new policy with failing tests is not active: it is not evaluated.
package policies
