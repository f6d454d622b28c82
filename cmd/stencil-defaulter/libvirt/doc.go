// Package libvirt defines domains with libvirt's QEMU driver, inside this process.
//
// The driver is opened as qemu:///embed, with its own folder: it uses no daemon and no
// configuration of the host, and starts no guest. It must run as a user other than root; as
// root it would query QEMU's capabilities for every domain, which takes seconds. The library is
// loaded at run time (build tag libvirt_dlopen), so one binary works with any version of it.
package libvirt
