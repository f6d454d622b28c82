// Package templates is the validating webhook of VirtualMachineTemplate, in both
// versions. It compiles what is about to be stored with the engine that will
// render from it, so that an error is met by the template's author and never by
// the person who creates a VM. Everything that is allowed and yet suspicious
// comes back as an admission warning.
package templates
