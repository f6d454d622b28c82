package packing

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/vmdk"
	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/ovf/conversion"
	"github.com/vmstencil/stencil/ovf/ova"
)

// Disk is a raw disk that becomes part of a package.
type Disk struct {
	// Name is that of the disk for messages and progress.
	Name string
	// Volume is the volume of the VirtualMachine.
	Volume string
	CDROM  bool
	// Content is a file or a block device, of which Size bytes are the disk.
	Content *os.File
	Size    int64
}

// Pass is what a disk is read for: all data is compressed twice, because its size, or its digest, comes before it in a package.
type Pass string

// The passes.
const (
	Measuring Pass = "measuring"
	Writing   Pass = "writing"
)

// Meter begins the progress of a pass over a disk, of total bytes of data. end is called after it.
type Meter func(d Disk, pass Pass, total int64) (progress func(done int64), end func())

// packed is a disk of an OVA.
type packed struct {
	conversion.ExportDisk
	// write writes the file's bytes.
	write func(ctx context.Context, w io.Writer) error
}

// OVA is a package that can be written.
type OVA struct {
	*conversion.Exported
	disks []packed
}

// NewOVA makes an OVA of a template, a VirtualMachine that it renders, see conversion.ExportOptions, and its disks. CDs stay as they are, and disks become
// VMDK, of which the sizes are computed.
func NewOVA(ctx context.Context, t *v1beta1.VirtualMachineTemplate, vm map[string]any, disks []Disk, meter Meter) (*OVA, error) {
	o := &OVA{}
	options := conversion.ExportOptions{VM: vm}
	for _, d := range disks {
		each, err := pack(ctx, t.Name, d, meter)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name, err)
		}
		o.disks = append(o.disks, each)
		options.Disks = append(options.Disks, each.ExportDisk)
	}
	var err error
	o.Exported, err = conversion.Export(t, options)
	return o, err
}

func pack(ctx context.Context, template string, d Disk, meter Meter) (p packed, err error) {
	p.ExportDisk = conversion.ExportDisk{Volume: d.Volume, Capacity: d.Size, Populated: -1}
	base := template + "-" + d.Volume
	image, err := disk.OpenRaw(d.Content, d.Size)
	if err != nil {
		return p, err
	}
	data, err := disk.Stored(image)
	if err != nil {
		return p, err
	}
	if d.CDROM {
		p.File, p.Format = ovf.File{Href: base + ".iso", Size: d.Size}, ovf.FormatISO
		p.write = func(ctx context.Context, w io.Writer) error {
			progress, end := meter(d, Writing, d.Size)
			defer end()
			_, err := io.Copy(w, &interruptible{ctx: ctx, from: io.NewSectionReader(image, 0, d.Size), progress: progress})
			return err
		}
		return p, nil
	}
	// The size of the file comes before the file.
	p.File, p.Format = ovf.File{Href: base + ".vmdk"}, ovf.FormatVMDKStream
	encoder := func(pass Pass) (*vmdk.Encoder, func(), error) {
		progress, end := meter(d, pass, data)
		made, err := vmdk.NewEncoder(image, vmdk.EncodeOptions{Name: p.File.Href, Options: disk.Options{Progress: progress}})
		return made, end, err
	}
	counting, end, err := encoder(Measuring)
	if err != nil {
		end()
		return p, err
	}
	layout, err := counting.Layout(ctx)
	end()
	if err != nil {
		return p, err
	}
	p.File.Size = layout.Size()
	p.write = func(ctx context.Context, w io.Writer) error {
		writing, end, err := encoder(Writing)
		defer end()
		if err == nil {
			_, err = writing.Write(ctx, w)
		}
		return err
	}
	return p, nil
}

// Write writes the OVA.
func (o *OVA) Write(ctx context.Context, w io.Writer) error {
	archive, err := ova.NewWriter(w, o.Envelope, ova.WriterOptions{Name: o.Envelope.Systems[0].ID})
	if err != nil {
		return err
	}
	for _, each := range o.disks {
		reader, writer := io.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			writer.CloseWithError(each.write(ctx, writer))
		}()
		err := archive.Add(reader)
		// It ends a writer whose bytes are not read.
		_ = reader.Close()
		<-done
		if err != nil {
			return fmt.Errorf("%s: %w", each.File.Href, err)
		}
	}
	if err := archive.Add(bytes.NewReader(o.Template)); err != nil {
		return err
	}
	return archive.Close()
}

// interruptible is a reader that ends with a context.
type interruptible struct {
	ctx      context.Context
	from     io.Reader
	done     int64
	progress func(done int64)
}

func (i *interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := i.from.Read(p)
	i.done += int64(n)
	i.progress(i.done)
	return n, err
}
