// Package render is the mutating webhook that turns a VirtualMachine which
// names a template into the VirtualMachine which the template describes.
//
// A handler decodes the request, asks whether the person may use the template,
// takes the compiled template from the cache, and hands all of it to a pure
// decision: creation (create.go) or update (update.go). The answer is a JSON
// Patch that holds only what changes; what the person wrote and nobody changed
// is never encoded again.
//
// # Creation
//
// The name of the request binds placeholders in the name of the template, the
// parameter annotations bind the rest, and what the person wrote beside the
// reference is laid over what was rendered: maps merge, lists whose items all
// carry a unique name merge by name, anything else replaces.
//
// # Update
//
// A stored VM is never rendered again. What remains is to make the same manifest
// a no-op, however it is sent: a manifest without a spec (or whose spec has no
// template, or is the very spec that was sent at creation) is laid over the
// stored object, a list that a declarative client sends again in its short form
// is merged by name once more, and a sensitive parameter that comes back is
// removed again. That the reference and the parameters do not change is not
// judged here but by a ValidatingAdmissionPolicy, which holds without us.
package render
