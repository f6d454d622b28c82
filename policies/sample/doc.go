// Package sample renders the VirtualMachine of a template's defaults, to evaluate templates before a VM owner uses them.
//
// A required parameter without a default gets a value from its declaration: the first one listed, the minimum or else the maximum, false
// for a bool; a parameter in the name pattern of the VirtualMachine gets policy-check. If any other is left, there is no sample, and the
// error names the parameters.
package sample
