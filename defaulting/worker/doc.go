// Package worker is what the supervisor and the process that calls libvirt say to
// each other, and that process's side of it.
//
// The worker reads domains from one pipe, has a Definer define each, and writes the
// descriptions into another; several at a time, so each has a number. It knows
// nothing of VirtualMachines, keeps no state between two requests, and never waits
// for a child: libvirt starts processes of its own, and reaping them is the
// supervisor's.
package worker
