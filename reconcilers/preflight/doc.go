// Package preflight reports what a cluster has that Stencil cannot stay beside, above all KubeVirt's own template component: package installation
// evaluates it. So an admin learns before an upgrade of KubeVirt what has to be done.
//
// It runs on the leader, at an interval, because definitions and APIServices change rarely. Gather: internal/preflight. Decide: package installation.
// Apply: a metric, and an event when a finding appears, changes or is solved. The event is about the definition or APIService, otherwise about the
// KubeVirt object.
package preflight
