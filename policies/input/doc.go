// Package input puts together what Rego policies see of a request: the
// objects, the template that a VirtualMachine was rendered from and the values of its
// parameters, its instance type and preference, and its namespace.
//
// A Case is filled by whoever asks: the webhooks from watch caches, the audit from
// the machines that it reads, the command line from files. Its Query is cheap and says
// which policies are to be asked at all; its Document, which compares the machine with
// its template, is made only when there are any.
//
// # What is masked
//
// Values of sensitive parameters are "***" in input.parameters and in the declared
// defaults. They do stand in input.object, where the template puts them: a policy
// that quotes user data in its messages publishes it.
//
// An evaluation that fails quotes what it failed at; see Redact.
//
// A Record, which is a decision as the decision log holds it, goes further: see Mask.
//
// The package is pure: it knows no Kubernetes client.
package input
