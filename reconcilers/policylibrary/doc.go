// Package policylibrary applies the policies of the library that the chart's values
// switch on, and takes away those that are switched off again.
//
// They stand in a ConfigMap of the release, one manifest of a VirtualMachinePolicy in
// each value. They are not objects of the release, because Helm asks the API server
// for every kind of a release before it creates the first object, and this kind comes
// with the same release; and because a policy is admitted by the manager, which an
// installation does not wait for.
//
// Gather: the ConfigMap, the policies that it names, and those that carry its label,
// straight from the API server. Decide ([decide], pure): which to apply, which to
// delete, and which belong to somebody else. Apply: server-side, so that what others
// write beside the manifest stays. It runs on the leader; watches of the ConfigMap and
// of the policies wake it, and a slow tick.
//
// A policy of the same name without the label is somebody else's: it is left alone, and an
// event says so.
//
// What is applied is owned by the ClusterRole that allows it, which the release owns:
// Kubernetes' garbage collector takes it away after an uninstallation. Without the
// ConfigMap or the ClusterRole nothing is done.
package policylibrary
