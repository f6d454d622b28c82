// Package containerdisk makes containerDisks: container images from which KubeVirt and CDI read a disk. An image has one layer, a tar archive with the
// folder /disk and one file in it, which belongs to the user and the group 107 (QEMU). The format is that of
// https://kubevirt.io/user-guide/storage/disks_and_volumes/#containerdisk.
//
// Images depend only on the disk and the architecture: they have no time.
package containerdisk
