// Package formats opens images of all formats that Stencil reads.
package formats

import (
	"fmt"
	"io"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/qcow2"
	"github.com/vmstencil/stencil/disk/vhd"
	"github.com/vmstencil/stencil/disk/vhdx"
	"github.com/vmstencil/stencil/disk/vmdk"
)

// Open returns the disk in a file of a format and a size in bytes.
func Open(r io.ReaderAt, size int64, format disk.Format) (disk.Image, error) {
	switch format {
	case disk.Raw:
		return disk.OpenRaw(r, size)
	case disk.QCOW2:
		return qcow2.Open(r, size)
	case disk.VMDK:
		return vmdk.Open(r, size)
	case disk.VHD:
		return vhd.Open(r, size)
	case disk.VHDX:
		return vhdx.Open(r, size)
	}
	return nil, fmt.Errorf("unknown disk format %q: choose %s, %s, %s, %s or %s", format, disk.Raw, disk.QCOW2, disk.VMDK, disk.VHD, disk.VHDX)
}

// Detect opens an image of the format that its magic number names. See disk.Detect about raw images.
func Detect(r io.ReaderAt, size int64) (disk.Image, error) {
	format, err := disk.Detect(r, size)
	if err != nil {
		return nil, err
	}
	return Open(r, size, format)
}
