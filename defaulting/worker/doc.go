// Package worker is the protocol between the supervisor and the process that calls libvirt, and
// that process's side of it.
//
// The worker reads domains from one pipe, defines each with a Definer, and writes the
// descriptions to another pipe. It handles several at a time, so each has a number. It does not
// handle VirtualMachines, holds no state between two requests, and never waits for a child:
// libvirt starts its own processes, and the supervisor reaps them.
package worker
