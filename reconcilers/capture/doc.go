// Package capture makes templates of VirtualMachines, as VirtualMachineTemplateRequests ask for.
//
// The way of a request: KubeVirt takes a VirtualMachineSnapshot of the machine; CDI copies each of the volumes in it into a
// DataVolume beside the request; KubeVirt says what the machine's instance type stands for; what comes out is converted (package
// capturing) and stored as a VirtualMachineTemplate; the disks are handed over to it, the snapshot is deleted, and the request
// is ready. docs/capture.md tells it with every condition and reason.
//
// Gather ([gatherer]): what there is of all that, read from the API server and from no cache, so that whoever takes over after a
// crash sees what was done last. Decide ([decide], pure): a checklist from which the first thing that is not done yet comes out, as
// one action. Apply ([Reconciler]): that one action, and the conditions that tell of it.
//
// Nothing is kept in memory between two looks, and every action can be done twice: names of what is created derive from the UID of
// the request, so that a second attempt meets the first; deletions name the UID of what they delete. What belongs to a
// request is told by owner references and UIDs. The label with the UID of the request only says whom an event concerns, for labels
// are anybody's to write.
//
// An owner reference cannot cross namespaces. A snapshot in another namespace is the request's when status.snapshotRef says so, or,
// before that could be written, when its name derives from the request's UID and it is a younger snapshot of the same machine:
// one that somebody has put there instead holds nothing else.
//
// While it is made, a template is owned by its request, so that nothing remains of a capture that is given up. At last that
// turns round: the request is owned by the template, and goes with it.
package capture
