// Package libvirt has the QEMU driver of libvirt define domains, inside this process.
//
// The driver is opened as qemu:///embed, with a folder of its own: it uses no daemon,
// no configuration of the machine that it runs on, and starts no guest. It must run as
// a user other than root; as root it would ask QEMU about itself again for every
// domain, which takes seconds. The library is loaded at run time (build tag
// libvirt_dlopen), so one binary works with any version of it.
package libvirt
