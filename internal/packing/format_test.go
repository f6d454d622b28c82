package packing

import (
	"testing"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/ovf"
)

func TestFormatsOfDisks(t *testing.T) {
	for name, tc := range map[string]struct {
		uri, file string
		cdrom     bool
		start     string
		want      disk.Format
		err       string
	}{
		"VMDK of ovftool":                     {uri: ovf.FormatVMDKStream, file: "a.vmdk", start: "KDMV", want: disk.VMDK},
		"VMDK of VMware Workstation":          {uri: "http://www.vmware.com/specifications/vmdk.html#sparse", file: "a.vmdk", want: disk.VMDK},
		"no URI, by content":                  {file: "a.bin", start: "QFI\xfb", want: disk.QCOW2},
		"no URI and no magic number, by name": {file: "a.VHD", start: "boot", want: disk.VHD},
		"nothing":                             {file: "a.img", start: "boot", want: disk.Raw},
		"content against the URI":             {uri: ovf.FormatVMDK, file: "a.vmdk", start: "QFI\xfb", want: disk.QCOW2},
		"an unknown URI, by content":          {uri: "http://example.com/other", file: "a.bin", start: "vhdxfile", want: disk.VHDX},
		"an unknown URI":                      {uri: "http://example.com/other", file: "a.vmdk", start: "boot", err: `the format "http://example.com/other" is not supported: VMDK, VHD, VHDX, qcow2, raw and ISO are`},
		"a CD is never something else":        {file: "a.iso", cdrom: true, start: "KDMV", want: disk.Raw},
		"a URI that begins like a known one":  {uri: ovf.FormatVMDK + "x", file: "a", err: `the format "` + ovf.FormatVMDK + `x" is not supported: VMDK, VHD, VHDX, qcow2, raw and ISO are`},
	} {
		got, err := Format(tc.uri, tc.file, tc.cdrom, []byte(tc.start))
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, format := range []disk.Format{disk.Raw, disk.VMDK, disk.VHD, disk.VHDX, disk.QCOW2} {
		if got, err := Format(URI(format), "a", false, nil); err != nil || got != format {
			t.Errorf("the URI of %s is that of %s (%v)", format, got, err)
		}
	}
}
