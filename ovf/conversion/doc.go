// Package conversion converts OVF envelopes to VirtualMachineTemplates, and templates to envelopes.
//
// [Import] returns a [Plan]: one template for each virtual system, the disks that the templates expect, and a note for each item of the
// descriptor: kept, changed or dropped. Nothing is written, so that a plan can be shown before it is applied. [Export] returns an
// envelope and the template as an additional file of the package: a section of its own (namespace [Namespace], not required) refers to the file, so
// that other products ignore it, and an import of the package yields the same template. Without the file, an import makes a template from
// the descriptor.
//
// The package is pure.
package conversion
