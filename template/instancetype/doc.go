// Package instancetype knows from where a VirtualMachine takes its size: which instance type
// and which preference it names, and what KubeVirt makes of them.
//
// The package is pure. Who finds the objects is a Resolver.
package instancetype
