// Package domain computes KubeVirt's defaults for a VirtualMachine and the libvirt domain
// derived from them.
//
// Prepare repeats KubeVirt's own defaulting in KubeVirt's order and records every field that it
// fills. NewShape reduces the result to what addresses depend on: devices by position, without
// names, sources and identities, so that VirtualMachines that differ in nothing else have the
// same Shape. Shape.Domain converts it to a libvirt domain, in which the only user-specified
// text is the machine type. Read extracts the addresses from libvirt's response, by alias and
// never by order.
//
// Fields is the table of every field that is filled or read, and the source of the reference
// docs/defaulting-fields.md.
//
// The package is pure: it does not call libvirt, read a clock or generate random numbers.
package domain
