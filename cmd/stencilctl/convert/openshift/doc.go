// Package openshift converts OpenShift Templates that hold one VirtualMachine to
// VirtualMachineTemplates.
//
// The two languages differ, and OpenShift's templates may hold what a VirtualMachineTemplate
// cannot. Every change is reported with its path in the Template; a Template is rejected if the
// conversion would lose a part of its function.
//
// The package is pure. It does not validate the result; package template does.
package openshift
