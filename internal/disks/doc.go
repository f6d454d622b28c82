// Package disks reads which disks a VirtualMachine has by its dataVolumeTemplates, and decides whether KubeVirt created them for it.
//
// virt-controller uses a DataVolume or PersistentVolumeClaim of the right name, no matter which user created it, and makes itself its owner, so that
// an ownerReference proves nothing. Objects that virt-controller itself creates have the label kubevirt.io/created-by with the UID of the
// VirtualMachine, and CDI copies it to the claim. The admission policy disk-provenance prevents other users from writing this label in governed
// namespaces. The label of the claim is decisive, because a guest starts from the claim: CDI takes over a claim that exists before its DataVolume,
// without adding labels to it.
//
// Webhooks and the audit share this package.
package disks
