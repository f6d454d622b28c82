// Package defaults holds the command defaults: it prints what stencil-defaulter, running or
// started for the command, fills into the VirtualMachine of a file.
package defaults
