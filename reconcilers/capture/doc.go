// Package capture creates VirtualMachineTemplates from VirtualMachines, as requested by VirtualMachineTemplateRequests.
//
// Steps of a request: KubeVirt takes a VirtualMachineSnapshot of the VM. CDI copies each of its volumes into a DataVolume in the namespace
// of the request. KubeVirt expands the instance type and the preference. Package conversion converts the result, which is stored as a
// VirtualMachineTemplate. The template becomes the owner of the disks, the snapshot is deleted, and the request is ready. docs/capture.md
// describes every condition and reason.
//
// Gather ([gatherer]) reads all these objects from the API server, not from a cache, so that a new leader sees the last action after a
// crash. Decide ([decide], pure) is a checklist that returns the first step that is not done yet, as one action. Apply ([Reconciler])
// performs that action, and writes the conditions that describe it.
//
// No state is retained in memory between two reconciliations, and every action can be repeated: names of created objects derive from the
// UID of the request, so that a second attempt finds the first; deletions have the UID as precondition. Owner references and UIDs determine
// what belongs to a request. The label with the UID of the request only determines which request an event is about, because any user may
// write labels.
//
// An owner reference cannot cross namespaces. A snapshot in another namespace belongs to the request if status.snapshotRef names it or,
// before that is written, if its name derives from the request's UID and it is a snapshot of the same VM, not older than the request: a
// snapshot that a user created in its place has the same content.
//
// Until it is complete, a template is owned by its request, so that nothing remains of a failed capture. At the end the request is owned by
// the template, and is deleted with it.
package capture
