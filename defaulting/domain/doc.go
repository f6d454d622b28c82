// Package domain knows what KubeVirt makes of a VirtualMachine and what libvirt is
// shown of it.
//
// Prepare repeats KubeVirt's own defaulting in KubeVirt's order and notes every field
// that it fills. NewShape reduces the result to what addresses depend on: devices by
// position, without names, sources and identities, so that machines which differ in
// nothing else are the same Shape. Shape.Domain writes it as a libvirt domain, in
// which the only text of a user's is the machine type. Read takes the addresses out
// of what libvirt answers, by alias and never by order.
//
// Fields is the table of everything that is filled or looked at, and the reference
// docs/defaulting-fields.md is made from it.
//
// The package is pure: it calls no libvirt, reads no clock and makes no random number.
package domain
