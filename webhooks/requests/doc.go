// Package requests is the validating webhook of VirtualMachineTemplateRequest, in both versions, for what can be known when one is
// created: names and labels that no template can have, a template of that name that exists, a VirtualMachine that does not.
//
// Existence is told to those only who may ask for it. What the policy template-request asks inside the API server, it asks
// here as well, before it looks for anything: whoever may not use a VirtualMachine as a source is told so in the same words whether
// or not it exists. Somebody who may can learn it in any case, from what becomes of the request; and whoever may create
// templates learns of one that exists by creating another.
package requests
