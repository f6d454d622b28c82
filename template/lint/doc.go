// Package lint returns all findings about a VirtualMachineTemplate: why the template webhook would deny it, which warnings
// it would return, and advice for the template's author.
//
// It is pure, and is used by both the webhook and stencilctl, so that both return the same.
package lint
