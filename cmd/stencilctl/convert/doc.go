// Package convert holds the command convert: it converts OpenShift Templates to
// VirtualMachineTemplates.
package convert
