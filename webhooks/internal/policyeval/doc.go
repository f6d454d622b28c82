// Package policyeval evaluates the Rego policies for admission requests.
//
// An Evaluator collects the policy input of a request, from watch caches only, and evaluates the policies that match the
// request. Two webhooks call it:
//
//   - the webhook of package validate, for VirtualMachines that approvals and rules evaluate: one response has the
//     objections of all,
//   - the Handler in this package, for all other requests that policies can match: other VirtualMachines, deletions,
//     templates and requests for templates. The API server calls it only while there are policies that match such
//     requests.
//
// # Failing closed
//
// A request is denied while the policies are not compiled, or while the namespace is not in the cache. If an instance
// type cannot be resolved, every policy counts as one that could not be evaluated, and its failure mode decides.
//
// # Exceptions
//
// A violation that a PolicyException allows does not deny a VirtualMachine: the user receives a warning. Policies that
// could not be evaluated have no exceptions.
//
// # The decision log
//
// If enabled, a sample of the decisions is logged as policyinput.Record under the key "decision": the policies that
// were evaluated, their versions and results, and the masked input, so that `stencilctl policy eval --decision` can
// repeat the evaluation.
package policyeval
