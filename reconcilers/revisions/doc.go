// Package revisions brings the copies of instance types and preferences that KubeVirt stores in ControllerRevisions to the version that the
// installed KubeVirt reads.
//
// Gather: an inventory of all such copies, page by page, joined with the VirtualMachines, snapshots and start revisions that refer to them.
// Decide: package revision, and the guards of this package. Apply: a copy in an old format is replaced by one of the same name, so that no
// reference to it changes. The data of a ControllerRevision is immutable, so the replacement deletes and creates. Before, the bytes are stored
// in a backup, a ControllerRevision that the same object owns, and the creation is tried in a dry run under another name. Whenever the process
// ends, the next pass finds in the backup what is missing. Labels are mutable, so wrong ones are only patched.
//
// No VirtualMachine, snapshot or start revision is written.
package revisions
