// Package input builds the input of Rego policies for a request: the objects, the
// template that a VirtualMachine was rendered from and the values of its parameters,
// its instance type and preference, and its namespace.
//
// The caller fills a Case: the webhooks from watch caches, the audit from the
// VirtualMachines that it reads, the command line from files. Its Query is cheap and
// selects the policies to evaluate; its Document, which compares the VirtualMachine
// with its template, is needed only if there are any.
//
// # What is masked
//
// Values of sensitive parameters are "***" in input.parameters and in the declared
// defaults. They are not masked in input.object, where the template puts them: a
// policy that quotes user data in its messages publishes it.
//
// The error of a failed evaluation quotes the value at which it failed; see Redact.
//
// A Record, which is a decision in the decision log, masks more: see Mask.
//
// The package is pure: it uses no Kubernetes client.
package input
