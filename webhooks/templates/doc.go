// Package templates is the webhooks of VirtualMachineTemplate, in both versions.
//
// The validating webhook compiles each template with the engine that renders it before it is stored. The template's author therefore
// receives the errors, and not a user who creates a VM. A template that is valid but suspicious is allowed with admission warnings.
//
// The mutating webhook labels new templates, so that they lend their disks.
package templates
