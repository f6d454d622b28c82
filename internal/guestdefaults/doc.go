// Package guestdefaults fills in the defaults that the guest of a VirtualMachine sees: from a VirtualMachine to a request to
// stencil-defaulter, and from its response to a JSON Patch, with the annotations that record it. The webhook for defaults
// and the resource defaults of the aggregated API share it.
package guestdefaults
