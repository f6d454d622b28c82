package mover

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/seal"
	"github.com/vmstencil/stencil/transfer"
)

// sealImage is a disk of the tests of package seal.
func sealImage(t *testing.T, name string) []byte {
	t.Helper()
	return testfile.Expand(t, "../../seal/testdata/"+name+".zst")
}

// sealedVolumes is a mover whose volumes have disks.
func sealedVolumes(t *testing.T, disks map[string][]byte, task *transfer.Task) *transfer.Seal {
	t.Helper()
	f := mounts(t, nil)
	for _, d := range task.Disks {
		if content, found := disks[d.Name]; found {
			write(t, f.path(transfer.DisksFolder, d.Name, transfer.DiskFile), content)
		}
	}
	m := New(f, task)
	m.seal(t.Context())
	return m.report.state.Seal
}

//suite:plain
func TestDisksAreExamined(t *testing.T) {
	unsealed, sealed := sealImage(t, "ext4-var"), sealImage(t, "ext4-sealed")
	disk := func(name string, content []byte) transfer.Disk {
		return transfer.Disk{Name: name, Size: int64(len(content))}
	}
	for _, tc := range []struct {
		name  string
		disks []transfer.Disk
		want  transfer.Seal
	}{
		{"no disk", nil, transfer.Seal{Sealed: seal.True}},
		{"a sealed disk", []transfer.Disk{disk("sealed", sealed)}, transfer.Seal{Sealed: seal.True}},
		{"a CD-ROM is not examined", []transfer.Disk{{Name: "tools", Size: 1 << 20, CDROM: true}}, transfer.Seal{Sealed: seal.True}},
		{"a volume that is larger than its disk", []transfer.Disk{{Name: "sealed", Size: 1 << 30}}, transfer.Seal{Sealed: seal.True}},
		{"a disk without a size", []transfer.Disk{{Name: "sealed"}}, transfer.Seal{Sealed: seal.True}},
		{"a copy has the name of its source", []transfer.Disk{{Name: "lost", Source: "web-root"}}, transfer.Seal{
			Sealed: seal.Unknown, Count: 1, Lines: []string{"web-root: the volume cannot be opened: no such file or directory"},
		}},
		{"a volume without a disk", []transfer.Disk{disk("sealed", sealed), {Name: "lost", Size: 1 << 20}}, transfer.Seal{
			Sealed: seal.Unknown, Count: 1, Lines: []string{"lost: the volume cannot be opened: no such file or directory"},
		}},
		{"findings come before what was not examined", []transfer.Disk{{Name: "lost", Size: 1 << 20}, disk("var", unsealed)}, transfer.Seal{
			Sealed: seal.False, Count: 5, Lines: []string{
				"var: /lib/cloud/instance (state of cloud-init)",
				"var: /lib/cloud/instances/i-0123 (state of cloud-init)",
				"var: /lib/dhcp/dhclient.eth0.leases (DHCP lease)",
				"var: /lib/NetworkManager/internal-0123-eth0.lease (DHCP lease)",
				"var: /lib/systemd/random-seed (random seed)",
			},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := sealedVolumes(t, map[string][]byte{"sealed": sealed, "var": unsealed}, &transfer.Task{Stage: transfer.Import, Disks: tc.disks})
			got.Lines = append([]string(nil), got.Lines...)
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestASealIsBounded(t *testing.T) {
	var disks []transfer.Disk
	for range transfer.MaxSealLines + 8 {
		disks = append(disks, transfer.Disk{Name: strings.Repeat("x", 300), Size: 1})
	}
	got := sealedVolumes(t, nil, &transfer.Task{Stage: transfer.Import, Disks: disks})
	if got.Count != transfer.MaxSealLines+8 || len(got.Lines) != transfer.MaxSealLines || len(got.Lines[0]) > transfer.MaxSealLine {
		t.Errorf("count %d, %d lines, the first of %d bytes", got.Count, len(got.Lines), len(got.Lines[0]))
	}
}

// TestImportsReportWhatIsOnTheirDisks has disks without file systems.
func TestImportsReportWhatIsOnTheirDisks(t *testing.T) {
	s := newSite(t, packageOf(t, v1beta1.ExportOVA))
	inspect := fromHTTP(transfer.Inspect, s.URL)
	task := toImport(inspect, succeed(t, mounts(t, nil), inspect).Plan)
	f := volumes(t, task)
	got := succeed(t, f, task).Seal
	isImported(t, f, task)
	if got == nil || got.Sealed != seal.Unknown || got.Count == 0 || !strings.HasSuffix(got.Lines[0], "there is no partition table and no known file system") {
		t.Errorf("the mover reports %+v", got)
	}
	if _, err := os.Stat(f.path(transfer.DisksFolder, task.Disks[0].Name)); err != nil {
		t.Error(err)
	}
}

// TestExportsReportWhatIsOnTheirDisks has a disk without a file system, and a mover that finds the package of an earlier one.
func TestExportsReportWhatIsOnTheirDisks(t *testing.T) {
	f := mounts(t, map[string][]byte{
		filepath.Join(transfer.DisksFolder, "root", transfer.DiskFile): rootDisk(), transfer.DisksFolder + "/tools": toolsDisk(), transfer.ResultFolder + "/.keep": nil,
	})
	want := &transfer.Seal{Sealed: seal.Unknown, Count: 1, Lines: []string{"root: there is no partition table and no known file system"}}
	for _, name := range []string{"the first mover", "a later one"} {
		if diff := cmp.Diff(want, succeed(t, f, exportTask("web.ova", v1beta1.ExportOVA)).Seal); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestAMoverThatOnlyExamines needs no package and no volume for one, and does not change the disk.
func TestAMoverThatOnlyExamines(t *testing.T) {
	unsealed := sealImage(t, "ext4-var")
	f := mounts(t, map[string][]byte{filepath.Join(transfer.DisksFolder, "disk-0", transfer.DiskFile): unsealed})
	task := &transfer.Task{Stage: transfer.Examine, Disks: []transfer.Disk{{Name: "disk-0", Source: "web-root", Size: 1 << 30}}}
	got := succeed(t, f, task).Seal
	if got == nil || got.Sealed != seal.False || got.Count != 5 || got.Lines[0] != "web-root: /lib/cloud/instance (state of cloud-init)" {
		t.Errorf("the mover reports %+v", got)
	}
	if !bytes.Equal(read(t, f.path(transfer.DisksFolder, "disk-0", transfer.DiskFile)), unsealed) {
		t.Error("the disk was changed")
	}
}
