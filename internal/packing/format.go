package packing

import (
	"fmt"
	"path"
	"strings"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/ovf"
)

// formatURIs are what the URIs of formats begin with. There is no registry of them; these are those that products write.
var formatURIs = map[string]disk.Format{
	ovf.FormatVMDK: disk.VMDK,
	// Of VMware Workstation, of early versions of ovftool, and of oVirt.
	"http://www.vmware.com/specifications/vmdk.html": disk.VMDK,
	ovf.FormatISO: disk.Raw,
	formatVHD:     disk.VHD,
	formatQCOW2:   disk.QCOW2,
}

const (
	formatVHD   = "http://www.microsoft.com/technet/virtualserver/downloads/vhdspec.mspx"
	formatQCOW2 = "http://www.gnome.org/~markmc/qcow-image-format.html"
	// formatVHDX is the name of the format: no product writes a URI.
	formatVHDX = string(disk.VHDX)
)

// extensions are the formats by the extension of a file.
var extensions = map[string]disk.Format{".vmdk": disk.VMDK, ".vhd": disk.VHD, ".vhdx": disk.VHDX, ".qcow2": disk.QCOW2}

// URI returns what the descriptor of a disk of this format has; empty for raw disks, which have none.
func URI(format disk.Format) string {
	return map[disk.Format]string{disk.VMDK: ovf.FormatVMDK, disk.VHD: formatVHD, disk.VHDX: formatVHDX, disk.QCOW2: formatQCOW2}[format]
}

// Format returns the format of a disk: that of the start of its content, or else of the URI in the descriptor, or else of the extension of the file. What says none
// of it is raw, as is an ISO image in any case. start is empty if the content is not known.
func Format(uri, file string, cdrom bool, start []byte) (disk.Format, error) {
	if cdrom {
		return disk.Raw, nil
	}
	if format := disk.Magic(start); format != "" {
		return format, nil
	}
	if format, known := byURI(uri); known {
		return format, nil
	}
	if uri != "" {
		return "", fmt.Errorf("the format %q is not supported: VMDK, VHD, VHDX, qcow2, raw and ISO are", uri)
	}
	if format, known := extensions[strings.ToLower(path.Ext(file))]; known {
		return format, nil
	}
	return disk.Raw, nil
}

func byURI(uri string) (disk.Format, bool) {
	if uri == formatVHDX {
		return disk.VHDX, true
	}
	for known, format := range formatURIs {
		if uri == known || strings.HasPrefix(uri, known+"#") {
			return format, true
		}
	}
	return "", false
}
