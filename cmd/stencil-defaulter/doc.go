// Command stencil-defaulter fills in what a guest will see before its VirtualMachine
// is stored. It is a sidecar of stencil-manager: a supervisor that serves HTTP on a
// unix socket, and a worker, the same binary, that has libvirt's QEMU driver in it.
package main
