// Package csi is a fake of a CSI driver and of the components around it on a cluster: external-provisioner, external-resizer, and the
// snapshot-controller with its sidecar. Its storage is a folder: a volume of mode Block is a sparse file, one of mode Filesystem a folder, and snapshots and
// clones are copies, taken when a driver would take them (Driver.Path, Driver.WriteDisk). The API behaviour is complete: volumes are provisioned for claims of the
// driver's storage class, also from snapshots and from other claims; snapshots get a VolumeSnapshotContent, are bound to it, and become ready to use;
// finalizers are added and removed; failures are written where the published components write them. kube-controller-manager binds claims to volumes
// and has to run.
//
// Rules (Driver.When) delay a step, fail it, hold it, delete its object, or report it out of order and more than once. Methods of Driver delete
// objects that already exist.
//
// The behaviour follows kubernetes-csi/external-provisioner v6, external-resizer v2 and external-snapshotter v8.
package csi
