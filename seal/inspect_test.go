package seal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// system are the findings of the tree "unsealed" of testdata/make.sh.
func system(partition int) []Finding {
	return []Finding{
		{partition, "/etc/machine-id", "machine ID"},
		{partition, "/etc/ssh/ssh_host_ed25519_key", "SSH host key"},
		{partition, "/etc/ssh/ssh_host_rsa_key", "SSH host key"},
		{partition, "/home/ann/.ssh/authorized_keys", "authorized SSH keys"},
		{partition, "/var/lib/NetworkManager/internal-0123-eth0.lease", "DHCP lease"},
		{partition, "/var/lib/cloud/instance", "state of cloud-init"},
		{partition, "/var/lib/cloud/instances/i-0123", "state of cloud-init"},
		{partition, "/var/lib/dhcp/dhclient.eth0.leases", "DHCP lease"},
		{partition, "/var/lib/systemd/random-seed", "random seed"},
	}
}

//suite:plain
func TestDisks(t *testing.T) {
	whole := system(0)
	for _, tc := range []struct {
		image, means string
		findings     []Finding
		unexamined   []Gap
	}{
		{"ext4", "of today", whole, nil},
		{"ext4-tree", "with a directory in a hash tree", whole, nil},
		{"ext4-inline", "with directories in inodes", whole, nil},
		{"ext4-metabg", "with group descriptors in their groups", whole, nil},
		{"ext4-64bit-none", "without 64bit and checksums", whole, nil},
		{"ext3", "with indirect blocks and a journal", whole, nil},
		{"ext2-tree", "with three levels of blocks", whole, nil},
		{"xfs", "of today", whole, nil},
		{"xfs-tree", "with extents of a directory in a tree", whole, nil},
		{"xfs-tree-wide", "with blocks of directories of two blocks", whole, nil},
		{"xfs-v4", "of the version before", whole, nil},
		{"ext4-sealed", "that is sealed", nil, nil},
		{"xfs-sealed", "that is sealed", nil, nil},
		{"ext4-dirty", "of a VM that was not shut down", nil, []Gap{{Reason: "its journal was not replayed"}}},
		{"ext4-links", "with a link instead of a directory", nil, []Gap{{Path: "/etc/ssh", Reason: "symbolic links are not followed"}}},
		{"ext4-ostree", "with deployments", nil, []Gap{{Path: "/ostree", Reason: "deployments of OSTree are not examined"}}},
		{"ext4-var", "that is /var", []Finding{
			{0, "/lib/NetworkManager/internal-0123-eth0.lease", "DHCP lease"},
			{0, "/lib/cloud/instance", "state of cloud-init"},
			{0, "/lib/cloud/instances/i-0123", "state of cloud-init"},
			{0, "/lib/dhcp/dhclient.eth0.leases", "DHCP lease"},
			{0, "/lib/systemd/random-seed", "random seed"},
		}, nil},
		{"xfs-homes", "that is /home", []Finding{{0, "/ann/.ssh/authorized_keys", "authorized SSH keys"}}, nil},
		{"gpt", "with /home in a partition", append(system(1), Finding{2, "/ann/.ssh/authorized_keys", "authorized SSH keys"}), nil},
		{"mbr", "with logical partitions", system(5), []Gap{
			{Partition: 6, Reason: "btrfs is not examined"},
			{Partition: 7, Reason: "there is no known file system"},
		}},
	} {
		t.Run(tc.image+" "+tc.means, func(t *testing.T) {
			report := inspectBytes(t, image(t, tc.image))
			want := True
			switch {
			case len(tc.findings) > 0:
				want = False
			case len(tc.unexamined) > 0:
				want = Unknown
			}
			sorted := func(f []Finding) map[Finding]int {
				set := map[Finding]int{}
				for _, each := range f {
					set[each]++
				}
				return set
			}
			if report.Sealed != want {
				t.Errorf("sealed is %s, want %s", report.Sealed, want)
			}
			if diff := cmp.Diff(sorted(tc.findings), sorted(report.Findings)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.unexamined, report.Unexamined); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestUnexaminedContents writes only the magic numbers: that is all that is read of such contents.
func TestUnexaminedContents(t *testing.T) {
	for _, tc := range []struct {
		name   string
		offset int
		magic  string
		want   string
	}{
		{"no contents", 0, "", "there is no partition table and no known file system"},
		{"NTFS without partitions", 3, "NTFS    ", "NTFS is not examined"},
		{"BitLocker", 3, "-FVE-FS-", "BitLocker is not examined"},
		{"LUKS", 0, "LUKS\xba\xbe", "LUKS is not examined"},
		{"LVM", 512, "LABELONE", "LVM is not examined"},
		{"btrfs", 65600, "_BHRfS_M", "btrfs is not examined"},
		{"an ISO image", 32769, "CD001", "ISO 9660 is not examined"},
		{"a damaged ext4", 1024 + 56, "\x53\xef", "ext: the superblock is damaged"},
		{"a damaged XFS", 0, "XFSB", "XFS: the superblock is damaged"},
		{"a damaged GPT", 512, "EFI PART", "the GPT is damaged"},
		{"an MBR whose partition is outside", 446, "\x00\x00\x00\x00\x83\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x7f" + strings.Repeat("\x00", 48) + "\x55\xaa", "partition 1 is outside of the disk"},
		{"swap has no files", 4086, "SWAPSPACE2", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			raw := make([]byte, 1<<20)
			copy(raw[tc.offset:], tc.magic)
			want := Report{Sealed: Unknown, Unexamined: []Gap{{Reason: tc.want}}}
			if tc.want == "" {
				want = Report{Sealed: True}
			}
			if diff := cmp.Diff(want, inspectBytes(t, raw)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if diff := cmp.Diff(Report{Sealed: Unknown, Unexamined: []Gap{{Reason: "there is no partition table and no known file system"}}}, inspectBytes(t, nil)); diff != "" {
		t.Error("an empty disk", diff)
	}
}

// failing is a disk that cannot be read.
type failing struct{}

func (failing) ReadAt([]byte, int64) (int, error) { return 0, errors.New("the server is gone") }

// panicking is a disk whose reader has a bug.
type panicking struct{}

func (panicking) ReadAt([]byte, int64) (int, error) { panic("no such cluster") }

func TestDisksThatCannotBeRead(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	raw := image(t, "ext4")
	for _, tc := range []struct {
		name string
		ctx  context.Context
		r    io.ReaderAt
		want string
	}{
		{"an error", t.Context(), failing{}, "reading the GPT: the server is gone"},
		{"a panic", t.Context(), panicking{}, "internal error: no such cluster"},
		{"an ended context", ended, bytes.NewReader(raw), "the examination ended early: context canceled"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			report := Inspect(tc.ctx, tc.r, int64(len(raw)))
			last := report.Unexamined[len(report.Unexamined)-1].Reason
			if report.Sealed != Unknown || last != tc.want {
				t.Errorf("got %s, %q; want Unknown, %q", report.Sealed, last, tc.want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	raw := image(t, "ext4-tree")
	for _, tc := range []struct {
		name   string
		limits limits
		want   string
	}{
		{"bytes", limits{bytes: 100_000, names: MaxEntries}, "more than 64 MiB have to be read"},
		{"names", limits{bytes: MaxRead, names: 1000}, "directories have more than 1048576 names"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.limits.ctx = t.Context()
			i := inspection{limits: &tc.limits}
			i.disk(bytes.NewReader(raw), int64(len(raw)))
			if i.limits.ended == nil || i.limits.ended.Error() != tc.want {
				t.Errorf("ended with %v, want %s", i.limits.ended, tc.want)
			}
		})
	}
	i := inspection{}
	for range MaxFindings + 5 {
		i.found(Finding{})
		i.unexamined(Gap{})
	}
	r := i.report.finish()
	if len(r.Findings) != MaxFindings || len(r.Unexamined) != MaxFindings || r.Unexamined[MaxFindings-1].Reason != "there are more than 100 findings; the others are not listed" {
		t.Errorf("%d findings, %d unexamined, the last %+v", len(r.Findings), len(r.Unexamined), r.Unexamined[len(r.Unexamined)-1])
	}
}

// TestReadsLittle has the number that docs/seal.md gives.
//
//suite:plain
func TestReadsLittle(t *testing.T) {
	for _, name := range []string{"gpt", "xfs-tree"} {
		raw := image(t, name)
		l := &limits{ctx: t.Context(), bytes: MaxRead, names: MaxEntries}
		i := inspection{limits: l}
		i.disk(bytes.NewReader(raw), int64(len(raw)))
		if read := MaxRead - l.bytes; read > 2<<20 {
			t.Errorf("%s: %d bytes are read", name, read)
		}
	}
}

func TestPrintable(t *testing.T) {
	for name, want := range map[string]string{
		"plain-name.1": "plain-name.1", "a b": "a b", "straße": "straße", `a"b`: `a"b`,
		"a\nb": `a\nb`, "\x1b[31m": `\x1b[31m`, "\xff": `\xff`, `a\b`: `a\\b`,
	} {
		if got := printable(name); got != want {
			t.Errorf("%q is printed as %s, want %s", name, got, want)
		}
	}
}

func TestMerge(t *testing.T) {
	for _, tc := range []struct {
		states []State
		want   State
	}{
		{nil, True}, {[]State{True, True}, True}, {[]State{True, Unknown}, Unknown}, {[]State{Unknown, False, True}, False}, {[]State{""}, Unknown},
	} {
		if got := Merge(tc.states...); got != tc.want {
			t.Errorf("%v: got %s, want %s", tc.states, got, tc.want)
		}
	}
}
