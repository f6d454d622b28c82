// Package policystatus writes the status of VirtualMachinePolicies: whether each compiles, whether its tests pass, which version is active,
// and the duration of its evaluations.
//
// It has two parts. The [Reconciler] runs on the leader: it gathers the state of the leader's own policycache and the reports of the
// replicas, decides the status ([statusOf], pure), and applies what differs from the stored status, with events about changes. The
// [Reporter] runs on every replica and writes its own entry of status.replicas, when its active version or its quarantine has changed, and
// otherwise at most once a minute.
//
// The audit and the check of templates write other fields of the same status. Each applies server-side, under a separate field manager, so
// no writer overwrites another, and a field that its writer leaves out is removed.
//
// While the version in spec is broken, the active one is stored in status.lastGood, from which a replica that starts in that time reads it.
package policystatus
