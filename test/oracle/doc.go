// Package oracle compares package defaulting with KubeVirt itself.
//
// KubeVirt's own code, imported as a library, makes an instance of a VirtualMachine and a domain of the instance, and takes the steps of
// virt-launcher with it; the defaulter does the same with its own. Both domains are defined by a real libvirt, and every PCI device has to have the
// same address. Then the defaults are written into the VirtualMachine and KubeVirt lays it out again: every written address must be the one that
// KubeVirt uses, and no device may have a different address than before.
//
// KubeVirt's converter is a thousand packages, of other versions than the product's, so this is a module of its own that nothing imports. Run it with
// `make oracle`.
package oracle
