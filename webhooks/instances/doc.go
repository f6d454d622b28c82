// Package instances is the validating webhook of VirtualMachineInstance: it allows a VirtualMachine to start only
// with disks that KubeVirt created for it.
//
// The creation of the VirtualMachineInstance is the last point at which a webhook receives the disks that a guest
// starts from. The validating webhook of VirtualMachine denies a VirtualMachine if its disks already exist, but a
// disk can be created after that and before virt-controller reads it. At this point the claims exist, and requests of
// virt-controller, which is exempt from the approvals, are evaluated too.
//
// The API server calls the webhook in namespaces where an approval denies, for instances of VirtualMachines with
// claims. It denies the instances while the webhook is unavailable. virt-controller reports a denial as an event of
// the VirtualMachine and retries.
//
// The webhook reads the VirtualMachine and the claims from the API server, and only where an approval denies.
package instances
