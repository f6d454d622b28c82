package qcow2

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/vmstencil/stencil/internal/disktest"
)

func TestWhatQEMUWritesIsRead(t *testing.T) {
	for name, options := range map[string][]string{
		"version 3":                       {"-o", "compat=1.1"},
		"version 2":                       {"-o", "compat=0.10"},
		"version 2, zlib":                 {"-c", "-o", "compat=0.10"},
		"zlib":                            {"-c"},
		"zlib, clusters of 2 MiB":         {"-c", "-o", "cluster_size=2M"},
		"zlib, clusters of 512 bytes":     {"-c", "-o", "cluster_size=512"},
		"zstd":                            {"-c", "-o", "compression_type=zstd"},
		"zstd, clusters of 2 MiB":         {"-c", "-o", "compression_type=zstd,cluster_size=2M"},
		"zstd, clusters of 4 KiB":         {"-c", "-o", "compression_type=zstd,cluster_size=4k"},
		"clusters of 512 bytes":           {"-o", "cluster_size=512"},
		"clusters of 2 MiB":               {"-o", "cluster_size=2M"},
		"preallocated metadata":           {"-o", "preallocation=metadata"},
		"lazy reference counts":           {"-o", "lazy_refcounts=on"},
		"reference counts of 64 bits":     {"-o", "refcount_bits=64"},
		"without detection of zeros, 64k": {"-S", "0"},
		"subclusters":                     {"-o", "extended_l2=on"},
		"subclusters of 512 bytes":        {"-o", "extended_l2=on,cluster_size=16k"},
		"subclusters of 64 KiB":           {"-o", "extended_l2=on,cluster_size=2M"},
		"subclusters, preallocated":       {"-o", "extended_l2=on,preallocation=metadata"},
		"subclusters, zlib":               {"-c", "-o", "extended_l2=on"},
		"subclusters, zstd":               {"-c", "-o", "extended_l2=on,compression_type=zstd,cluster_size=128k"},
	} {
		t.Run(name, func(t *testing.T) {
			raw := disktest.Sample(t)
			if slices.Contains(options, "-c") {
				raw = disktest.SmallSample(t)
			}
			disktest.CheckImage(t, Open, disktest.Convert(t, raw, "qcow2", options...), raw)
		})
	}
}

// With each pattern of subclusters, what QEMU reads is read.
func TestSubclustersOfAllStatesAreRead(t *testing.T) {
	_, image := small(t, "-o", "extended_l2=on")
	for name, bitmaps := range map[string][]uint64{
		"alternating":                 {0xaaaaaaaa, 0x55555555},
		"zero and absent":             {0x0000ffff_00000000, 0xff00ff00_00ff0000},
		"the first and the last":      {0x80000001, 0x7ffffffe},
		"stored, zero and absent":     {0x00ff0000_ff0000ff, 0x0f0f0f0f_f0000000},
		"all stored and none, by bit": {0xffffffff, 0},
	} {
		t.Run(name, func(t *testing.T) {
			changed := bytes.Clone(image)
			for i, bitmap := range bitmaps {
				copy(changed[l2At+16*i+8:], u64(bitmap))
			}
			path := filepath.Join(t.TempDir(), "disk.qcow2")
			if err := os.WriteFile(path, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			disktest.CheckImage(t, Open, path, disktest.Made(t, path, "disk.raw", "convert -f qcow2 -O raw disk.qcow2 disk.raw"))
		})
	}
}

func TestTheActiveLayerOfAnImageWithSnapshotsIsRead(t *testing.T) {
	raw := disktest.Sample(t)
	path := disktest.Made(t, raw, "disk.qcow2", "convert -f raw -O qcow2 disk.raw disk.qcow2", "snapshot -c before disk.qcow2", "snapshot -c a-longer-name-of-a-snapshot disk.qcow2")
	disktest.CheckReads(t, disktest.Image(t, Open, path), raw)
}

func TestAnEmptyImage(t *testing.T) {
	for _, size := range []int64{0, 512, 100 * disktest.GiB} {
		raw := disktest.Raw(t, size)
		image := disktest.Image(t, Open, disktest.Convert(t, raw, "qcow2"))
		if got := image.Info().Size; got != size {
			t.Errorf("the size is %d instead of %d", got, size)
		}
		disktest.Compare(t, disktest.Extract(t, image), raw)
	}
}
