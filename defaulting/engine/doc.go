// Package engine answers requests: it has libvirt lay out the shape of a VirtualMachine, and
// writes the defaults that may be written.
//
// It caches three things. The response to a whole request is reused if it has no random value
// other than the firmware UUID, which is replaced. A layout is cached by shape and by the
// versions of libvirt and QEMU, independent of the caller and of the VirtualMachine's name. A
// shape that libvirt rejects is cached as well. Any other failure is not cached.
package engine
