// Package readiness reports for every template whether a VirtualMachine can be created from it now, and if not, what is missing.
//
// It runs on the leader, one request for one template.
//
// # Gather
//
// The objects that a template depends on are read from watches that store a reduced form of each (package sources): its state and the
// object that it refers to. Names are rendered with the parameters' defaults (package sample); what depends on a parameter without a
// default is Unknown. An index maps each object, missing ones too, to the templates that depend on it. So a change of an object causes one
// request for each of these templates, and no list. Changes by CDI that do not affect the reduced form cause none.
//
// # Decide
//
// references.go finds the dependencies of a VM, resolve.go their state, following DataSources as CDI does, and decide.go the conditions.
// None of them uses a client.
//
// # Apply
//
// Status by server-side apply with a separate field manager, events when Ready changes, metrics. The condition PolicyCompliant is written
// by package compliance and only read here. flip.go finds the cause of each change of Ready, announcer.go collects changes with the same cause,
// and report.go makes one event of them.
//
// If dry runs are enabled, dryrun.go creates the VirtualMachine of each template's defaults with dryRun=All, ten per second at most, and
// caches the result. An admission policy of the chart ensures that it cannot create one without dryRun.
package readiness
