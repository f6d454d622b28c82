// Package writers records who wrote the specification of a VirtualMachineTemplate or VirtualMachineTemplateExport, in annotation
// template.kubevirt.io/written-by. Stencil does something with accounts of its own for that user later: it reports on objects of other namespaces that the
// template refers to, and copies disks into a package. It checks their permissions then; see package powers.
package writers
