// Package defaults is the mutating webhook that fills in the defaults that depend on the node where a guest starts:
// the version of the machine type, PCI addresses, the bus of a disk. It is called after the mutating webhooks of
// other projects. It queries stencil-defaulter, the sidecar of the manager, over a unix socket; see package
// defaulting.
//
// # Creation
//
// The webhook fills empty fields as configured by the policy, and records them in annotation
// defaults.template.kubevirt.io/applied. It is idempotent: calling it on its own result changes nothing.
//
// # Update
//
// A manifest that is applied again contains lists without the defaults of their items, and aliases of machine types.
// If the stored VM has such a default and the device is unchanged, the webhook restores the stored value (restore.go).
// The guest's hardware stays the same, and applying the same manifest changes nothing. The webhook then queries the
// defaulter: for all empty fields if no instance exists, and only for the addresses of new disks if one exists.
//
// An approval evaluates every difference between an update and the stored VM, and cannot distinguish the webhook's
// additions from the user's. In a governed namespace an update therefore receives no default at a path that the user
// did not change.
//
// # When the defaulter is unavailable
//
// Depending on the failure policy, the VM is allowed with a warning and an annotation, or denied. A VM that the
// defaulter rejects because it can never be defined is rejected under both policies.
package defaults
