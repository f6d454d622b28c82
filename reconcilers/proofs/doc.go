// Package proofs reports VirtualMachines that are approved and denied: it decides the policies that deny for all values of a template's parameters that
// approvals allow (package proof), and writes the condition PolicyCompliantForAllValues of templates and approvals.
//
// It runs on the leader, in one worker that is not on the path of any request: when templates, approvals, policies, instance types or labels of
// namespaces have changed, and at an interval, because annotations of namespaces change too.
//
// # Questions
//
// A question is a template, an approval that approves it, and a namespace that the approval selects. Namespaces that the policies cannot tell apart have
// one question, see namespaces.go. A template that no approval approves has one question, about its own namespace and all values that it accepts.
//
// # Cost
//
// The result of each policy is cached until the policy, the template, the approval, an instance type that was read, or what the policies read of the
// namespace changes: an update of one policy decides that policy alone. Questions have limits of combinations, and templates one of time. After a budget
// of work the reconciler pauses for a multiple of it, and continues where it has stopped, so that it takes a fraction of one processor.
//
// # Conditions
//
//   - On every template with parameters that have several listed or bounded values, and to which a policy with enforcement Deny applies.
//   - On every approval that approves a template to which such a policy applies, if it selects a namespace.
//
// They are written by server-side apply with a separate field manager: that of a template as soon as it is decided, those of approvals when all
// templates are.
package proofs
