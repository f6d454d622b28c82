package packing

import (
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
	// Name of the disk for messages and progress.
	Name string
	// Volume is the volume of the VirtualMachine.
	Volume string
	CDROM  bool
	// Content is a file or a block device, of which Size bytes are the disk.
	Content *os.File
	Size    int64
}

// open returns the disk, and the bytes of its data.
func (d Disk) open() (image disk.Image, data int64, err error) {
	if image, err = disk.OpenRaw(d.Content, d.Size); err != nil {
		return nil, 0, err
	}
	data, err = disk.Stored(image)
	return image, data, err
}

// Meter begins the progress of a disk, of total bytes of data. end is called after it.
type Meter func(d Disk, total int64) (progress func(done int64), end func())

// OVA is a package that can be written.
type OVA struct {
	// Exported has the sizes of files when the package is written.
	*conversion.Exported
	// contents write the files of the disks.
	contents []func(ctx context.Context, w io.Writer) error
}

// NewOVA makes an OVA of a template, a VirtualMachine that it renders, see conversion.ExportOptions, and its disks. CDs stay as they are, and disks become
// VMDK. It reads no data.
func NewOVA(t *v1beta1.VirtualMachineTemplate, vm map[string]any, disks []Disk, compression v1beta1.ExportCompression, meter Meter) (*OVA, error) {
	encoding, err := grains(compression)
	if err != nil {
		return nil, err
	}
	o := &OVA{}
	options := conversion.ExportOptions{VM: vm}
	for _, d := range disks {
		each := conversion.ExportDisk{Volume: d.Volume, Capacity: d.Size, Populated: -1}
		write, err := pack(t.Name, d, encoding, meter, &each)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name, err)
		}
		o.contents = append(o.contents, write)
		options.Disks = append(options.Disks, each)
	}
	o.Exported, err = conversion.Export(t, options)
	return o, err
}

// maxTemplateName bounds the part of the template in the names of files, which OVAs limit.
const maxTemplateName = 128

// pack completes a disk of the package, and returns what writes its file.
func pack(template string, d Disk, encoding vmdk.Encoding, meter Meter, to *conversion.ExportDisk) (func(ctx context.Context, w io.Writer) error, error) {
	base := template[:min(len(template), maxTemplateName)] + "-" + d.Volume
	image, data, err := d.open()
	if err != nil {
		return nil, err
	}
	if d.CDROM {
		to.File, to.Format = ovf.File{Href: base + ".iso"}, ovf.FormatISO
		return func(ctx context.Context, w io.Writer) error {
			progress, end := meter(d, d.Size)
			defer end()
			_, err := io.Copy(w, &interruptible{ctx: ctx, from: io.NewSectionReader(image, 0, d.Size), progress: progress})
			return err
		}, nil
	}
	to.File, to.Format = ovf.File{Href: base + ".vmdk"}, ovf.FormatVMDKStream
	var progress func(done int64)
	encoder, err := vmdk.NewEncoder(image, vmdk.EncodeOptions{Name: to.File.Href, Encoding: encoding, Options: disk.Options{Progress: func(done int64) { progress(done) }}})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, w io.Writer) error {
		var end func()
		progress, end = meter(d, data)
		defer end()
		_, err := encoder.Write(ctx, w)
		return err
	}, nil
}

// Write writes the OVA to an empty file.
func (o *OVA) Write(ctx context.Context, file *os.File) error {
	return ova.Create(file, o.Envelope, ova.WriterOptions{Name: o.Envelope.Systems[0].ID}, func(w io.Writer, i int) error {
		if i < len(o.contents) {
			return o.contents[i](ctx, w)
		}
		_, err := w.Write(o.Template)
		return err
	})
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
