// Package templates caches every VirtualMachineTemplate of the cluster, compiled, for callers that render templates.
//
// A reflector of client-go lists and then watches the templates. Each is compiled as it arrives and only the compiled form
// is stored. The received object is dropped at once, also while the first list streams in, so memory never holds two forms
// of a template. A template that arrives again with the same UID and generation (a status update, for example) is not
// compiled again. A template that does not compile is stored with its error, which callers receive.
//
// Callers get a snapshot: a Template never changes after it was returned, and a later version of the same object is another
// Template.
package templates
