// Package policies keeps the VirtualMachinePolicies that are in force, compiled
// and ready, for the webhooks, which ask for every request.
//
// A reflector of client-go tells of policies. Nothing is compiled while it waits, and
// nothing while a request does: a policy that comes or changes is put into a queue,
// compiled and tested by workers of a small pool, each under a watchdog, and then a new
// policyset.Set takes the place of the old one behind an atomic pointer. After the start
// there is one worker, so that requests keep the other processors.
//
// # Which version is in force
//
// The one in spec, when it compiles and its tests pass. Otherwise the last good one
// stays in force. It is kept in memory, and by the leader in status.lastGood, where a
// replica finds it that was started since. When there is none:
//
//   - A policy that does not compile, or that was in force before, is broken: it
//     cannot be evaluated, so that its failure mode decides about every request that it
//     applies to.
//   - A new policy whose tests fail is not in force: nothing is judged by it.
package policies
