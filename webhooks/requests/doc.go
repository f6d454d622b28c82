// Package requests is the validating webhook of VirtualMachineTemplateRequest, in both versions. It checks what is
// decidable at creation: names and labels that are invalid for a template, a template of that name that already
// exists, a VirtualMachine that does not exist.
//
// The webhook discloses existence only to users with the permissions that admission policy template-request requires,
// and checks them before it reads any object. A user who may not use a VirtualMachine as a source receives the same
// message whether or not it exists. A user who may use it can find out anyway, from the result of the request, and a
// user who may create templates can find out that one exists by creating another.
package requests
