// Package openshift turns Templates of OpenShift that hold one VirtualMachine into
// VirtualMachineTemplates.
//
// The two languages differ in places, and OpenShift's templates may hold what a
// VirtualMachineTemplate cannot. Whatever becomes something else is told, by its place
// in the Template; what would lose a part of what the Template does is refused.
//
// The package is pure. It does not judge what comes out: the engine does.
package openshift
