// Package policing asks the Rego policies about admission requests.
//
// A Judge gathers what policies see of a request, from watch caches alone, and evaluates
// those that the request is subject to. Two webhooks ask it:
//
//   - the one of package validate, for VirtualMachines that approvals and rules judge: what
//     all of them have against one comes back in one answer,
//   - the Handler here, for everything else that policies can be about: other
//     VirtualMachines, deletions, templates and requests for templates. The API server
//     calls it only while there are policies that want it.
//
// # Failing closed
//
// A request is refused while the policies have not been compiled, or while the namespace
// is not known. When an instance type is not known, every policy counts as one that could
// not be evaluated, and its failure mode decides.
//
// # The decision log
//
// Asked to, a Judge logs a sample of its decisions as policyinput.Record under the key
// "decision": which policies were asked, in which version, what they found, and the input,
// masked, so that `stencilctl policy eval --decision` can decide again.
package policing
