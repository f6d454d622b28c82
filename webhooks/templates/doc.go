// Package templates is the webhooks of VirtualMachineTemplate, in both versions.
//
// The validating webhook compiles each template with the engine that renders it before it is stored. The template's author therefore
// receives the errors, and not a user who creates a VM. A template that is valid but suspicious is allowed with admission warnings.
//
// One mutating webhook labels new templates, so that they lend their disks. The other restores fields that a client of the published API has
// dropped (template/extensions). The validating webhook checks its result, because the API server ignores it while it does not answer.
package templates
