package vmdk

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/disk"
)

// isDescriptor returns whether a file is the text that lists the files of a disk.
func isDescriptor(start []byte) bool {
	return bytes.HasPrefix(bytes.ToLower(bytes.TrimLeft(start, " \t\r\n")), []byte("# disk descriptorfile"))
}

// extentKinds of a descriptor that name a file, or zeros.
var extentKinds = map[string]bool{
	"FLAT": true, "SPARSE": true, "ZERO": true, "VMFS": true, "VMFSSPARSE": true, "VMFSRDM": true, "VMFSRAW": true, "SESPARSE": true,
}

// checkDescriptor rejects a descriptor with which the disk consists of more than the file that it is in. Names of files are reported and
// never opened. alone is true for a descriptor in a file of its own.
func checkDescriptor(text []byte, alone bool) error {
	if end := bytes.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	extents := 0
	for line := range bytes.Lines(text) {
		line := strings.TrimSpace(string(line))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if fields := strings.Fields(line); len(fields) >= 3 && extentKinds[fields[2]] {
			extents++
			if alone || fields[2] != "SPARSE" {
				return disk.VMDK.Errorf("the disk is in another file (extent %s): only disks in one file are read; convert it to streamOptimized", quoted(line))
			}
			if extents > 1 {
				return disk.VMDK.Errorf("the disk is in several files (extent %s): only disks in one file are read; convert it to streamOptimized", quoted(line))
			}
			continue
		}
		key, value, found := strings.Cut(line, "=")
		if !found {
			continue
		}
		value = strings.Trim(strings.TrimSpace(value), `"`)
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "parentcid":
			if !strings.EqualFold(value, "ffffffff") {
				return disk.VMDK.Errorf("a snapshot of another disk (parentCID %s): consolidate the snapshots and export the disk", quoted(value))
			}
		case "parentfilenamehint":
			return disk.VMDK.Errorf("a snapshot of another disk (parent %s): consolidate the snapshots and export the disk", quoted(value))
		}
	}
	if alone {
		return disk.VMDK.Errorf("a descriptor without a disk")
	}
	return nil
}

// quoted shortens untrusted text.
func quoted(text string) string {
	if len(text) > 128 {
		return fmt.Sprintf("%.128q…", text)
	}
	return fmt.Sprintf("%q", text)
}

// descriptor returns the text in a stream. Its first lines are those that VMware's own exports have.
func descriptor(capacity, cid uint64, name string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Disk DescriptorFile\nversion=1\nCID=%08x\nparentCID=ffffffff\ncreateType=\"streamOptimized\"\n\n", uint32(cid))
	fmt.Fprintf(&b, "# Extent description\nRDONLY %d SPARSE %q\n\n", capacity, name)
	// The geometry that VMware gives a disk of a SCSI controller.
	heads, sectors := uint64(255), uint64(63)
	cylinders := min((capacity+heads*sectors-1)/(heads*sectors), 65535)
	b.WriteString("# The Disk Data Base\n#DDB\n\nddb.virtualHWVersion = \"4\"\nddb.adapterType = \"lsilogic\"\n")
	fmt.Fprintf(&b, "ddb.geometry.cylinders = \"%d\"\nddb.geometry.heads = \"%d\"\nddb.geometry.sectors = \"%d\"\n", cylinders, heads, sectors)
	return b.Bytes()
}
