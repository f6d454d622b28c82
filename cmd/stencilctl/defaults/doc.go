// Package defaults is the command defaults: what stencil-defaulter fills into the
// VirtualMachine of a file, by one that runs or by one that is started for it.
package defaults
