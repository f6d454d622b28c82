package vhdx

import (
	"testing"

	"github.com/vmstencil/stencil/internal/disktest"
)

func TestWhatQEMUWritesIsRead(t *testing.T) {
	for name, options := range map[string]string{
		"dynamic":                  "subformat=dynamic",
		"fixed":                    "subformat=fixed",
		"dynamic, blocks of 1 MiB": "subformat=dynamic,block_size=1M",
		"dynamic, no state zero":   "subformat=dynamic,block_state_zero=off",
	} {
		t.Run(name, func(t *testing.T) {
			raw := disktest.Sample(t)
			disktest.CheckImage(t, Open, disktest.Convert(t, raw, "vhdx", "-o", options), raw)
		})
	}
}

// With blocks of 1 MiB, an entry for a sector bitmap follows each 4096 blocks.
func TestBlocksAfterAnEntryForASectorBitmapAreRead(t *testing.T) {
	const size = 9 * disktest.GiB
	raw := disktest.Raw(t, size, disktest.Range{Offset: 4*disktest.GiB - 4096, Length: 8192}, disktest.Range{Offset: size - 4096, Length: 4096})
	image := disktest.Image(t, Open, disktest.Convert(t, raw, "vhdx", "-o", "block_size=1M"))
	disktest.Compare(t, disktest.Extract(t, image), raw)
}
