package ova

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/files"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/vmdk"
	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/ovf/conversion"
	"github.com/vmstencil/stencil/ovf/ova"
)

// packed is a file of a new package.
type packed struct {
	conversion.ExportDisk
	// write writes the file's bytes.
	write func(ctx context.Context, w io.Writer) error
	file  *os.File
}

// packedResult describes a new package. Its JSON form is output.
type packedResult struct {
	File     string `json:"file"`
	Template string `json:"template"`
	// Files are the files of the package apart from the descriptor.
	Files []listed          `json:"files"`
	Notes []conversion.Note `json:"notes"`
}

// pack writes an OVA from a folder with a template and its disks.
func (c *converting) pack(ctx context.Context, folder string) (err error) {
	if err := files.Absent(c.outputFile); err != nil {
		return err
	}
	t, err := files.TemplateIn(folder)
	if err != nil {
		return err
	}
	values, err := templates.Values(&source.Reader{In: c.streams.In}, c.parameters, "")
	if err != nil {
		return err
	}
	made, err := t.Render(values, nil)
	if err != nil {
		return err
	}
	vm, notes, err := sized(made.VM, t.Object.Namespace, c.instancetypes)
	if err != nil {
		return err
	}
	options := conversion.ExportOptions{VM: vm}
	var all []packed
	defer func() {
		for _, each := range all {
			err = errors.Join(err, each.file.Close())
		}
	}()
	for _, from := range conversion.Sources(t.Object, made.VM) {
		each, err := c.packed(ctx, folder, t.Object.Name, from)
		if err != nil {
			return err
		}
		all = append(all, each)
		options.Disks = append(options.Disks, each.ExportDisk)
	}
	exported, err := conversion.Export(t.Object, options)
	if err != nil {
		return cli.Usage(err)
	}
	result := packedResult{File: c.outputFile, Template: t.Object.Name, Files: []listed{}, Notes: append(notes, exported.Notes...)}
	for _, note := range result.Notes {
		fmt.Fprintln(c.streams.Err, note)
	}
	for _, file := range exported.Envelope.Files {
		result.Files = append(result.Files, listed{Name: file.Href, Size: file.Size})
	}
	if err := files.Create(c.outputFile, func(w io.Writer) error { return c.writeOVA(ctx, w, exported, all) }); err != nil {
		return err
	}
	if !c.format.Is(cli.Table) {
		return c.format.Write(c.streams.Out, result)
	}
	fmt.Fprintln(c.streams.Out, c.outputFile)
	return nil
}

// packed opens the raw disk of a volume, and computes the size of its file in the package. CDs stay as they are, and disks become VMDK.
func (c *converting) packed(ctx context.Context, folder, template string, from conversion.Source) (p packed, err error) {
	name := files.DiskName(from.Claim)
	if p.file, err = files.OpenDisk(folder, from.Claim); err != nil {
		return p, cli.Usage(fmt.Errorf("the disk of volume %s: %w", from.Volume, err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.file.Close())
		}
	}()
	size, err := p.file.Seek(0, io.SeekEnd)
	if err != nil {
		return p, cli.Usage(err)
	}
	p.ExportDisk = conversion.ExportDisk{Volume: from.Volume, Capacity: size, Populated: -1}
	base := template + "-" + from.Volume
	if from.CDROM {
		p.File, p.Format = ovf.File{Href: base + ".iso", Size: size}, ovf.FormatISO
		p.write = func(ctx context.Context, w io.Writer) error {
			_, err := io.Copy(w, files.Interruptible(ctx, io.NewSectionReader(p.file, 0, size)))
			return err
		}
		return p, nil
	}
	image, err := disk.OpenRaw(p.file, size)
	if err != nil {
		return p, cli.Usage(fmt.Errorf("%s: %w", name, err))
	}
	data, err := disk.Stored(image)
	if err != nil {
		return p, cli.Usage(fmt.Errorf("%s: %w", name, err))
	}
	// The size of the file comes before the file, so that all data is compressed twice.
	p.File, p.Format = ovf.File{Href: base + ".vmdk"}, ovf.FormatVMDKStream
	encoder := func(what string) (*vmdk.Encoder, *files.Meter, error) {
		bar := files.NewMeter(c.streams, what+" "+name, data)
		made, err := vmdk.NewEncoder(image, vmdk.EncodeOptions{Name: p.File.Href, Options: disk.Options{Progress: bar.To}})
		return made, bar, err
	}
	counting, bar, err := encoder("measuring")
	if err != nil {
		return p, cli.Usage(fmt.Errorf("%s: %w", name, err))
	}
	layout, err := counting.Layout(ctx)
	bar.End()
	if err != nil {
		return p, cli.Internal(fmt.Errorf("%s: %w", name, err))
	}
	p.File.Size = layout.Size()
	p.write = func(ctx context.Context, w io.Writer) error {
		writing, bar, err := encoder("writing")
		if err != nil {
			return err
		}
		defer bar.End()
		_, err = writing.Write(ctx, w)
		return err
	}
	return p, nil
}

// writeOVA writes the files of the package and the template.
func (c *converting) writeOVA(ctx context.Context, w io.Writer, exported *conversion.Exported, all []packed) error {
	name := exported.Envelope.Systems[0].ID
	archive, err := ova.NewWriter(w, exported.Envelope, ova.WriterOptions{Name: name})
	if err != nil {
		return cli.Usage(err)
	}
	for _, each := range all {
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
	if err := archive.Add(bytes.NewReader(exported.Template)); err != nil {
		return err
	}
	return archive.Close()
}
