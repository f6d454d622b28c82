// Package oracle holds package defaulting against KubeVirt itself.
//
// KubeVirt's own code, imported as a library, makes an instance of a VirtualMachine
// and a domain of the instance, and takes the steps of virt-launcher with it; the
// defaulter does the same with its own. Both domains are defined by a real libvirt,
// and every PCI device has to be at the same place. Then the defaults are written
// into the VirtualMachine and KubeVirt is asked again: what was written must be
// where KubeVirt puts it, and nothing may have moved.
//
// KubeVirt's converter is a thousand packages, of other versions than the product's,
// so this is a module of its own that nothing imports. Run it with `make oracle`.
package oracle
