// Package template holds the contract between a VirtualMachine and the template
// it is rendered from: the annotations that users write, and the annotations
// and labels that the render webhook writes.
//
// The versioned kinds of the API group template.kubevirt.io live in the packages
// v1alpha1 and v1beta1 below this one.
package template
