//go:build !qemu

package disktest

// Live is set if qemu-img makes images and compares disks while tests run.
const Live = false
