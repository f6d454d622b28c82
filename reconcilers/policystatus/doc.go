// Package policystatus writes the status of VirtualMachinePolicies: whether each compiles, whether its tests pass, which version is in
// force, and what its evaluations take.
//
// Two parts of it run. The [Reconciler] runs on the leader: it gathers what the leader's own policycache knows and what the
// replicas have reported, decides the status ([statusOf], pure), and applies what differs from what is stored, with events
// about what people should know. The [Reporter] runs on every replica and writes its own entry of status.replicas,
// when it says something else than before, and otherwise at most once a minute.
//
// Other parts of Stencil write other fields of the same status: the audit and the check of templates. Everybody applies
// server-side, under a field manager of its own, so nobody overwrites anybody, and a field that somebody leaves out goes.
//
// While the version in spec is broken, the one in force is kept in status.lastGood, where a replica finds it that starts
// meanwhile.
package policystatus
