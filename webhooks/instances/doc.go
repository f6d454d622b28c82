// Package instances is the validating webhook of VirtualMachineInstance: it lets a VirtualMachine start only with disks that KubeVirt
// created for it.
//
// The creation of the VirtualMachineInstance is the last moment at which a webhook sees what a guest will start from. The validating
// webhook of VirtualMachine refuses one whose disks exist already, but a disk can be created between that and the moment at which
// virt-controller looks for it. Here the claims exist, and virt-controller, which is exempt from the approvals, is not exempt.
//
// The API server calls it in namespaces where an approval denies, for instances of VirtualMachines with claims, and refuses them while
// nobody answers. virt-controller reports a refusal as an event of the VirtualMachine and tries again.
//
// The VirtualMachine and the claims are read from the API server itself, and only where an approval denies.
package instances
