// Package defaults is the mutating webhook that fills in, after everybody else's
// webhooks, what a guest would otherwise be given on some node: the version of the
// machine type, PCI addresses, the bus of a disk. It asks stencil-defaulter, the
// sidecar of the manager, over a unix socket; see package defaulting.
//
// # Creation
//
// What is empty is filled as the policy says, and the annotation
// defaults.template.kubevirt.io/applied tells with what. Calling the webhook on its
// own result changes nothing.
//
// # Update
//
// A manifest that is applied again holds lists without the defaults of their items,
// and aliases of machine types. Where the stored machine has such a default and the
// device is still the same, the stored value is put back (keep.go), so that the
// guest's hardware stays what it was and the same manifest changes nothing. Only then
// the defaulter is asked: for all that is empty when no instance exists, for the
// addresses of new disks when one does.
//
// An approval judges everything by which an update differs from what is stored, and
// cannot tell the webhook's additions from the person's. So where a namespace is
// governed an update is given no default at a place that the person did not change.
//
// # When the defaulter cannot answer
//
// The machine is let through with a warning and an annotation, or refused, as the
// failure policy says. A refusal of the defaulter's, for what can never be defined,
// is one under either policy.
package defaults
