// Package vmrules evaluates a VirtualMachine by its rules: those of its template, and those in its own annotation.
// Templates from OpenShift have such rules; package validations reads and evaluates them.
//
// A VM with an instance type is evaluated with the size that KubeVirt will give it.
package vmrules
