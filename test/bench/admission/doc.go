// Package admission measures what Stencil's webhook adds to the creation of a VirtualMachine: by clients that create one
// after the other, in dry runs, against a real API server, in three set-ups by turns. Everything that happens in one round
// happens within seconds, and differences are taken within rounds, so that a machine that is slower for a while
// does not pass for a webhook that is.
package admission
