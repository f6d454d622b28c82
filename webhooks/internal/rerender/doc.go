// Package rerender renders the template of a stored VirtualMachine again: with the values that the VirtualMachine shows, and with other values of
// mutable parameters. It does nothing with users and approvals.
package rerender
