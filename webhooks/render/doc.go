// Package render is the mutating webhook that turns a VirtualMachine with a reference to a template into the
// VirtualMachine that the template describes.
//
// A handler decodes the request, checks that the user may use the template, gets the compiled template from the
// cache, and passes them to a pure decision: creation (create.go) or update (update.go). The response is a JSON Patch
// that contains only the changes; user-specified fields that do not change are not encoded again.
//
// # Creation
//
// The name in the request binds placeholders in the name of the template, and the parameter annotations bind the
// other parameters. The fields that the user specifies beside the reference are merged over the rendered object: maps
// are merged, lists are merged by name if all items have a unique name, and any other value replaces the rendered
// one.
//
// A VM with a complete spec, as process and consoles send it, is not rendered but compared (instance.go): it is an instance of
// its template if it equals what the template makes of the values that it shows. In governed namespaces, labels may take the
// place of the reference, if an approval accepts them.
//
// # Update
//
// A stored VM is never rendered again. The webhook makes sending the same manifest again a no-op, for every kind of
// client. A manifest is merged over the stored object if it has no spec, or if its spec has no template or equals the
// spec that was sent at creation. A list that a declarative client sends again in its short form is merged by name
// again. Where an update removes an override, the template's value returns: an annotation holds what overrides cover (package overrides). A sensitive
// parameter that is sent again is removed again. That the reference and the parameters do not
// change is enforced by a ValidatingAdmissionPolicy, which does not depend on this webhook.
package render
