// Package evaluation chooses the policies that a request is subject to and evaluates
// them within bounds.
//
// A Set is an immutable snapshot of all active policies, with an index: which
// policies a request matches is decided here, before any Rego runs. Who publishes
// sets keeps the current one behind an atomic pointer; a request that has taken a
// set is not disturbed by the next one.
//
// An Evaluator lives as long as the process. It evaluates what matched on a bounded
// number of goroutines, ends each evaluation at its policy's deadline and the request
// at its own, and survives policies that panic or that do not stop. A policy that
// runs into its deadline again and again is quarantined: for a while its failure mode
// decides at once. What it knows of a policy is kept by name and digest, so it
// outlives the replacement of other policies, and ends with a new version.
//
// The package is pure: it knows no Kubernetes client.
package evaluation
