package ova

import (
	"fmt"
	"io"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/formats"
	"github.com/vmstencil/stencil/internal/packing"
	"github.com/vmstencil/stencil/ovf"
)

// examine compares what the descriptor says about disks with the start of their files, corrects format and capacity in the envelope, and warns. What cannot be
// converted is warned of as well, so that inspect and validate foresee it.
func (o *opened) examine() {
	if o.pkg == nil {
		return
	}
	for i := range o.envelope.Disks {
		d := &o.envelope.Disks[i]
		f := o.envelope.File(d.FileRef)
		if f == nil {
			continue
		}
		warn := func(message string, arguments ...any) {
			if len(o.envelope.Warnings) < ovf.MaxWarnings {
				o.envelope.Warnings = append(o.envelope.Warnings, ovf.Warning{Path: "file " + f.Href, Message: fmt.Sprintf(message, arguments...)})
			}
		}
		start, err := o.start(f)
		if err != nil {
			warn("it cannot be converted: %v", err)
			continue
		}
		declared, unknown := packing.Format(d.Format, f.Href, false, nil)
		format, err := packing.Format(d.Format, f.Href, false, start)
		if err != nil {
			warn("it cannot be converted: %v", err)
			continue
		}
		if format != declared || unknown != nil {
			warn("it is %s by its content, and the descriptor says otherwise", format)
		}
		if d.Format != ovf.FormatISO && (format != declared || unknown != nil || d.Format == "") {
			d.Format = packing.URI(format)
		}
		if f.Compression != "" || d.Format == ovf.FormatISO {
			continue
		}
		content := o.pkg.Raw(f)
		image, err := formats.Open(content, content.Size(), format)
		if err != nil {
			warn("it cannot be converted: %v", err)
			continue
		}
		if size := image.Info().Size; size > d.Capacity && d.CapacityProperty == "" {
			warn("the disk has %d bytes, and %d according to the descriptor: it gets the larger size", size, d.Capacity)
			d.Capacity = size
		}
	}
}

// start returns the first bytes of the content of a file.
func (o *opened) start(f *ovf.File) ([]byte, error) {
	content, err := o.pkg.Content(f)
	if err != nil {
		return nil, err
	}
	start, err := io.ReadAll(io.LimitReader(content, disk.MagicBytes))
	return start, err
}
