// Package templates is the validating webhook of VirtualMachineTemplate, in both versions. It compiles each template
// with the engine that renders it before it is stored. The template's author therefore receives the errors, and not a
// user who creates a VM. A template that is valid but suspicious is allowed with admission warnings.
package templates
