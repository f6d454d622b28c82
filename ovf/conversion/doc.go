// Package conversion converts OVF envelopes to VirtualMachineTemplates, and templates to envelopes.
//
// [Import] returns a [Plan]: one template for each virtual system, the disks that the templates expect, and a note for everything that the
// descriptor has, which says what becomes of it. Nothing is written, so that a plan can be shown before it is carried out. [Export] returns an
// envelope and the template as an additional file of the package: a section of its own (namespace [Namespace], not required) refers to the file, so
// that other products ignore it, and an import of the package yields the same template. Without the file, an import makes a template from what
// the descriptor says.
//
// The package is pure.
package conversion
