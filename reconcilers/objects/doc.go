// Package objects creates the objects that a template has besides the VirtualMachine, after the VirtualMachine was created: the render webhook has
// stored them in an annotation, encrypted; see internal/objects. They are created as a service account of their own, which may create these kinds
// and no others, and belong to the VirtualMachine: the garbage collector deletes them with it. When all of them exist, the annotation is
// removed, and with it what holds the VirtualMachine back from starting.
//
// An object that exists already is never taken over. Only for kinds that the service account may read can the reconciler recognize an object that
// it created itself before it was stopped.
package objects
