// Package requests is the validating webhook of VirtualMachineTemplateRequest, in both versions. It checks what is
// decidable at creation: names and labels that are invalid for a template, and a template of that name that already
// exists. It warns about a VirtualMachine that does not exist yet.
//
// Whether the user may capture decides the admission policy template-request. The webhook discloses the existence of an
// object only to users who could find it out anyway: that of a VirtualMachine to users who may read it or use it as a
// source, and that of a template to users who may create one.
package requests
