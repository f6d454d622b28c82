// Package audit counts the stored VirtualMachines that satisfy the approvals that select their namespace, and lists those that do not: VMs
// that are older than an approval, that were created where an approval only warns or audits, that a changed or deleted template no longer
// matches, or that an exempt user changed.
//
// In the same pass it counts the VMs that satisfy the VirtualMachinePolicies that apply to them.
//
// It runs on the leader, one audit at a time. An audit of everything runs when an approval, a policy, a template, an instance type or the
// labels of a namespace change, and at a fixed interval. When a VM, its instance, one of its pods or a claim changes, which package
// observed reports, only the namespace of that object is audited, and the results of the other namespaces are retained.
//
// # Gather
//
// The approvals and namespaces come from package coverage, the templates from package cache/templates. The VirtualMachines are read from
// the API server page by page. They are decoded from the stream of the response, and each is discarded after it is evaluated, so that
// memory never holds all VMs of a cluster. If few namespaces are governed, each is listed by itself. If most are, all VMs are listed, and
// those in other namespaces are skipped.
//
// # Decide
//
// A stored VM is evaluated like a VM that a user creates: its reference names a template, an approval lists that template, template.Match
// finds values of the parameters that make the VM equal to the template except for the approval's overrides, and the approval allows the
// values. The author of a stored VM is not recorded, so every approval applies and no exemption does. An approval that pins a digest
// approves the template only while the template has that content.
//
// A VM that satisfies an approval violates it nevertheless if the claim of one of its dataVolumeTemplates was not created by KubeVirt for
// this VM and the approvals do not allow that: the VM would not start. The labels of claims are listed for each namespace that contains a
// VM with such disks.
//
// A VM also violates its approvals if its instance differs from it, if the image of a container in its pods comes neither from KubeVirt nor
// from its spec, or if its owners, its finalizers or the size that its status names are not KubeVirt's. Instances and pods that belong to
// no VM are reported like VMs.
//
// Policies are evaluated as if the VM were created now by an unspecified user: the subjects of a policy are ignored, and a policy without
// rules for creation is skipped. Only the rule deny counts, whatever the enforcement. A policy that cannot be evaluated counts as violated,
// unless its failure mode is Allow: then the VM is not counted for that policy.
//
// A violation that a PolicyException allows counts as excepted. The author of a stored VM is not recorded, so an exception for certain
// subjects is not applied.
//
// # Apply
//
//   - status.audit of every policy, by server-side apply.
//   - status.audit of every exception, and an event on each VM that uses one and did not at the audit before.
//   - The status of every approval: counts, the first violations, and the condition Ready, which a second controller in this
//     package also updates between audits. It is written only if more than the time differs.
//   - Metrics.
//   - An OpenReports Report called stencil for each audited namespace that contains a VM or a violation. It exists even if
//     every VM conforms: a namespace without a Report was not audited. It names the first VMs that do not conform, with the
//     paths at which they differ. It omits the template's values, because users who may read the Report may lack permission
//     to read the template. While the definition of Reports is not installed, none are written.
//
// After a failed audit, the counts in statuses and metrics remain those of the audit before, and the condition Ready reports the
// failure.
package audit
