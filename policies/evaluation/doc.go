// Package evaluation selects the policies that apply to a request and evaluates them
// within limits.
//
// A Set is an immutable snapshot of all active policies, with an index: it
// selects the policies that match a request, before any Rego runs. The publisher
// of sets stores the current one in an atomic pointer; a request that uses a set
// is not affected by the next one.
//
// An Evaluator lives as long as the process. It evaluates the matching policies on a
// limited number of goroutines, ends each evaluation at its policy's deadline and the
// request at its own, and tolerates policies that panic or do not stop. A policy that
// exceeds its deadline repeatedly is quarantined: for some time its failure mode
// decides at once. The state of a policy is stored by name and digest, so it is
// retained when other policies are replaced, and dropped with a new version.
//
// The package is pure: it uses no Kubernetes client.
package evaluation
