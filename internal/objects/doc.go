// Package objects carries the objects of a template besides the VirtualMachine from the admission of the VirtualMachine to the reconciler that
// creates them.
//
// An admission webhook must not create objects, and what it has rendered cannot be rendered again: passwords are random, and the template may
// change. The rendered objects are therefore stored in an annotation of the VirtualMachine, encrypted with a key that only the manager reads, until
// the reconciler has created them and removes the annotation. Until then another annotation, which the VirtualMachineInstance inherits, holds the
// VirtualMachine back.
package objects
