// Package defaulting defines the request and response types of POST /v1/defaults, the API of
// the defaulter.
//
// Before a VirtualMachine is stored, the defaulter fills in what its guest would otherwise
// receive on first start: the versioned machine type, PCI addresses, the bus of a disk. Each
// package below this one has one task:
//
//	domain    KubeVirt's defaults for a VirtualMachine, and its libvirt domain
//	launcher  the sequence of defines by which virt-launcher assigns addresses
//	engine    from a request to a response, with a cache
//	service   the engine behind HTTP
//	client    the caller's side of the service
//
// None of them needs cgo. libvirt itself is called by cmd/stencil-defaulter, which is a
// separate Go module.
package defaulting
