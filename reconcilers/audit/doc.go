// Package audit counts how many of the stored VirtualMachines satisfy the approvals that cover them, and names those that
// do not: machines that are older than an approval, that were created where it warns or only counts, whose template has
// changed or gone, or that were changed by somebody exempt.
//
// In the same walk it counts how many satisfy the VirtualMachinePolicies that apply to them.
//
// It runs on the leader, one audit at a time: when an approval, a policy, a template, an instance type, or the labels of a
// namespace have changed, and every few minutes all the same. When a machine, its instance, a pod of it or a claim changes, which package
// observed reports, the namespaces of these alone are audited, and what was found in the others is retained.
//
// # Gather
//
// The approvals and namespaces come from package coverage, the templates from package templatecache. The VirtualMachines
// are read from the API server page by page, straight from the response, and each is forgotten as soon as it is judged:
// nobody keeps all machines of a cluster in memory. Where few namespaces are governed, each is listed by itself; where
// most are, all machines are listed, and those that nobody governs are passed over.
//
// # Decide
//
// A stored machine is judged like a new one that its author wrote: its reference names a template, an
// approval lists that template, template.Match finds one binding of the parameters that makes the machine equal to it,
// but for the approval's overrides, and the approval allows the values. Nobody knows any more who wrote it, so
// every approval serves the author and none exempts them. An approval that pins a digest approves the template only while it
// has that content.
//
// A machine that satisfies an approval violates it all the same when the claim of one of its dataVolumeTemplates was not created by
// KubeVirt for it, and the approvals do not allow it: it would not start. The labels of claims are listed for each namespace that holds
// a machine with such disks.
//
// It violates its approvals as well when its instance differs from it, when a container of its pods comes from elsewhere than KubeVirt and its
// spec, when its owners, its finalizers or the size that its status names are not KubeVirt's. Instances and pods that belong to no machine
// are reported like machines.
//
// Policies are asked as if the machine were created now, by nobody in particular: whom a policy is about does not matter, and
// one that has nothing to say about creation is not asked. What counts is the rule deny, whatever the enforcement. A policy
// that cannot be evaluated counts as violated, unless its failure mode lets machines pass; then the machine does not
// count.
//
// # Apply
//
//   - status.audit of every policy, by server-side apply.
//   - The status of every approval: counts, the first violations, and the condition Ready, which a
//     second controller here also keeps between audits. It is written when it differs in more than the time.
//   - Metrics.
//   - An OpenReports Report for each governed namespace that holds a machine, called stencil. It stays when every
//     machine conforms, so that a namespace without one is a namespace that was not judged. It names the first machines
//     that do not conform, with the paths at which they differ and without the template's values, because people who may
//     read the Report need not be allowed to read the template. Where the definition of Reports is not installed
//     there are none, until it is.
//
// A failed audit leaves everything as the one before it has left it, and says so in the condition.
package audit
