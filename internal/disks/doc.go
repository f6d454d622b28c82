// Package disks reads which disks a VirtualMachine has by its dataVolumeTemplates, and decides whether KubeVirt created them for it.
//
// virt-controller uses a DataVolume or PersistentVolumeClaim of the right name whoever made it, and makes itself its owner, so that an
// ownerReference proves nothing. What virt-controller creates itself carries the label kubevirt.io/created-by with the UID of the
// VirtualMachine, and CDI copies it to the claim. The admission policy disk-provenance lets nobody else write this label in governed
// namespaces. What counts is the label of the claim, because the claim is what a guest starts from: CDI takes over a claim that exists
// before its DataVolume, without adding labels to it.
//
// Webhooks and the audit share this package.
package disks
