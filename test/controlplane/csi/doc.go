// Package csi plays a CSI driver and what stands around one on a cluster: external-provisioner, external-resizer, and the
// snapshot-controller with its sidecar. There is no storage behind it. What others see of storage in the API is played faithfully:
// volumes are provisioned for claims of the driver's storage class, also from snapshots and from other claims; snapshots get a
// VolumeSnapshotContent, are bound to it, and become ready to use; finalizers are held and given back; failures are written where the
// published components write them. kube-controller-manager binds claims to volumes, as everywhere, and has to run.
//
// Switches (Driver.When) delay a step, fail it, hold it, let its object vanish, or report it out of order and more than once. Methods
// of Driver make things vanish that exist already.
//
// The behaviour follows kubernetes-csi/external-provisioner v6, external-resizer v2 and external-snapshotter v8.
package csi
