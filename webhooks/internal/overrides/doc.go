// Package overrides merges what a user specifies over a template, and keeps what the template has there, so that removing an
// override brings the template's value back.
//
// The base of a stored VirtualMachine is its spec without overrides: what the template rendered when the VirtualMachine was created, with what
// KubeVirt and the defaults added since. It is not stored. A Note lists the places where a VirtualMachine differs from its base, and what the base has
// there; the base is the stored spec with these differences undone. So a note is as small as the overrides, and its size is limited.
//
// A note never holds a value that contains the value of a sensitive or generated parameter. It names such a place, and what the base
// has there is Unknown, unless the template of that time still exists and the VirtualMachine shows the value elsewhere.
package overrides
