// Command stencil-defaulter fills in the defaults that a guest sees before its VirtualMachine
// is stored. It is a sidecar of stencil-manager: a supervisor that serves HTTP on a unix
// socket, and a worker, the same binary, that contains libvirt's QEMU driver.
package main
