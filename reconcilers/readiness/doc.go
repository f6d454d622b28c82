// Package readiness says of every template whether a VirtualMachine can be made from it now, and if not, what it waits for.
//
// It runs on the leader, one request for one template.
//
// # Gather
//
// Whatever a template depends on is read from watches that keep a few words of each object (package sources): its state and where it
// leads. Names are those that the parameters' defaults give (package sample); what depends on a parameter without a default is Unknown.
// An index knows which templates looked at which object, missing ones too. So a change of one object is one request for each template
// that depends on it, and no list; and what CDI rewrites without changing its meaning is none.
//
// # Decide
//
// references.go finds what a machine depends on, resolve.go in what state that is, following DataSources as CDI does, and decide.go
// makes conditions of it. None of them knows a client.
//
// # Apply
//
// Status by server-side apply with a field manager of its own, an event when Ready changes, metrics. The condition PolicyCompliant
// belongs to package compliance and is only read here.
//
// Where dry runs are switched on, dryrun.go creates the VirtualMachine of each template's defaults with dryRun=All, a few in a second
// at most, and remembers the answer. It never creates one: an admission policy of the chart sees to that.
package readiness
