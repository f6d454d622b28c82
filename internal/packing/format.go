package packing

import (
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/ovf"
)

// formatURIs are what the URIs of formats begin with. There is no registry of them; these are those that products write.
var formatURIs = map[string]disk.Format{
	ovf.FormatVMDK: disk.VMDK,
	ovf.FormatISO:  disk.Raw,
	"http://www.microsoft.com/technet/virtualserver/downloads/vhdspec.mspx": disk.VHD,
	"http://www.gnome.org/~markmc/qcow-image-format.html":                   disk.QCOW2,
}

// Format returns the format of a disk by its URI in the descriptor. An ISO image may have none.
func Format(uri string, cdrom bool) (disk.Format, error) {
	if uri == "" && cdrom {
		return disk.Raw, nil
	}
	for known, format := range formatURIs {
		if uri == known || strings.HasPrefix(uri, known+"#") {
			return format, nil
		}
	}
	return "", fmt.Errorf("the format %q is not supported: VMDK, VHD, qcow2 and ISO are", uri)
}
