// Package lint says everything that there is to say about a
// VirtualMachineTemplate: why the template webhook would refuse it, what it would warn
// about, and what else its author might want to know.
//
// It is pure, and lives below the webhook and stencilctl, so that both say the same.
package lint
