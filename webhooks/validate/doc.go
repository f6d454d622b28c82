// Package validate is the validating webhook of VirtualMachine: it enforces the approvals on VMs that refer to a
// template.
//
// On creation it does not trust the content of the VM. The record of the rendering must name the template of the
// reference, in the version in the cache, and the VM must match that template: template.Match finds the one binding
// of the parameters that makes them equal, and the approvals evaluate that binding. Fields that an approval lists as
// overrides are not compared. The fields that the VM has beyond its template were evaluated by the render webhook,
// which received the user-specified VM before other webhooks added to it.
//
// On update it evaluates only the changes of a stored VM. The template may have changed or been deleted, and fields
// that the approval froze remain frozen.
//
// The API server calls the webhook where an approval may deny or warn, and in all namespaces for VMs with rules of
// their own or of their template. The same call evaluates the Rego policies, and one response has the objections of
// all. The webhook of package policyeval receives the other requests.
//
// The webhook reads from watch caches, with one exception: where an approval denies or warns, a new VM with
// dataVolumeTemplates that is approved otherwise must not have disks that already exist, unless the approvals allow
// it. A DataVolume and a claim are looked up in the API server for each of them, in parallel. See package instances
// for disks that are created later.
package validate
