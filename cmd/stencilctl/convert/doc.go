// Package convert holds the command convert: VirtualMachineTemplates of Templates of
// OpenShift.
package convert
