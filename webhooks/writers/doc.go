// Package writers records who wrote the specification of a VirtualMachineTemplate, and who created a VirtualMachineTemplateRequest, an import or an export, in
// annotation template.kubevirt.io/written-by. Stencil does something with accounts of its own for that user later: it reports on objects of other namespaces
// that a template refers to, and captures, imports and exports. It checks their permissions then; see package powers.
package writers
