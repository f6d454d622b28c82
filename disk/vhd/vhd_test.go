package vhd

import (
	"testing"

	"github.com/vmstencil/stencil/internal/disktest"
)

func TestWhatQEMUWritesIsRead(t *testing.T) {
	for name, options := range map[string]string{
		"dynamic": "subformat=dynamic,force_size=on",
		"fixed":   "subformat=fixed,force_size=on",
	} {
		t.Run(name, func(t *testing.T) {
			raw := disktest.Sample(t)
			disktest.CheckImage(t, Open, disktest.Convert(t, raw, "vpc", "-o", options), raw)
		})
	}
}

// By default QEMU extends the disk to the next geometry.
func TestTheSizeIsThatOfTheFooter(t *testing.T) {
	for _, options := range []string{"subformat=dynamic", "subformat=fixed"} {
		raw := disktest.Sample(t)
		path := disktest.Convert(t, raw, "vpc", "-o", options)
		image := disktest.Image(t, Open, path)
		if got := image.Info().Size; got <= disktest.SampleSize {
			t.Errorf("%s: the size is %d", options, got)
		}
		extracted := disktest.Extract(t, image)
		disktest.Compare(t, extracted, raw)
	}
}
