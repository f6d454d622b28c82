// Package instancetype determines the size of a VirtualMachine: which instance type and which preference it references, and
// the size that KubeVirt derives from them.
//
// The package is pure. A Resolver finds the objects.
package instancetype
