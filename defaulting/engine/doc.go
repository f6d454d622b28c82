// Package engine answers requests: it has a VirtualMachine's shape laid out, and
// writes what may be written.
//
// Three things are remembered. A whole request that was answered with nothing random
// in it is answered the same way again. A shape has one layout, whoever asks and
// whatever the machine is called; the key is the shape and the versions of libvirt and
// QEMU. A shape that libvirt refuses is remembered as well. What failed for any other
// reason is not.
package engine
