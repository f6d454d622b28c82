// Package defaulting says what is asked of the defaulter and what it answers: the
// types of POST /v1/defaults.
//
// The defaulter fills in, before a VirtualMachine is stored, what its guest would
// otherwise be given when it is first started: the versioned machine type, PCI
// addresses, the bus of a disk. The rooms below this package each do one thing:
//
//	domain    what KubeVirt makes of a VirtualMachine, and its libvirt domain
//	launcher  the sequence of defines by which virt-launcher arrives at addresses
//	engine    from a request to an answer, with a cache
//	service   the engine behind HTTP
//	client    the caller's side of it
//
// None of them needs cgo. libvirt itself is called by cmd/stencil-defaulter, which
// is a Go module of its own.
package defaulting
