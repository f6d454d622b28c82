// Package validate is the validating webhook of VirtualMachine: it holds a VM
// that refers to a template to what the cluster admins approved.
//
// On creation it does not believe what it is told. The record of the rendering
// must name the template that the reference names, in the version that the cache
// holds, and the VM must match that template: template.Match finds the one
// binding of the parameters that makes them equal, and the approvals judge that
// binding. Fields that an approval lists as overrides are not compared. What the
// VM has beyond its template was judged by the render webhook, which saw what
// the person wrote before anyone else added to it.
//
// On update a stored VM is judged by what changes and by nothing else: its
// template may have moved on or be gone, and what the approval froze stays
// frozen all the same.
//
// The API server calls it where an approval may deny or warn, and in all namespaces for VMs
// with rules of their own or of their template. The same call evaluates the Rego policies,
// and one response has the objections of all; see package policing, whose webhook receives
// the other requests.
//
// The answer comes from watch caches, but for one question: where an approval denies or
// warns, a new VM with dataVolumeTemplates that is approved otherwise must not have disks
// that exist already, unless the approvals allow it. A DataVolume and a claim are looked
// up for each of them, at the same time, from the API server itself. See package
// instances for disks that are created a moment later.
package validate
