// Package policylibrary applies the policies of the library that the chart's values enable, and deletes those that are disabled again.
//
// They are in a ConfigMap of the release, one manifest of a VirtualMachinePolicy in each value. They are not objects of the release,
// because Helm requests every kind of a release from the API server before it creates the first object, and this kind is part of the same
// release; and because the manager admits policies, and an installation does not wait for it.
//
// Gather: the ConfigMap, the policies that it names, and those that carry its label, directly from the API server. Decide (in policyapply, pure):
// which to apply, which to delete, and which belong to another owner. Apply: server-side, so that fields that others add to a policy are
// preserved. It runs on the leader when a watch of the ConfigMap or of the policies reports a change, and at an interval.
//
// A policy of the same name without the label belongs to another owner: it is not changed, and an event reports it.
//
// An applied policy is owned by the ClusterRole that permits it, which the release owns: Kubernetes' garbage collector deletes it after an
// uninstallation. Without the ConfigMap or the ClusterRole nothing is done.
package policylibrary
