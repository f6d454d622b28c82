// Package sample makes the VirtualMachine that a template makes when nobody gives a value, for those who judge templates before a
// VM owner uses them.
//
// A required parameter without a default gets a value that its declaration offers: the first one listed, the minimum or else the
// maximum, false for a bool; one that the name of the VirtualMachine consists of gets the name policy-check. If any is left over, there
// is no sample, and the error names the parameters.
package sample
