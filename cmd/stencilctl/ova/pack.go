package ova

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/files"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
	"github.com/vmstencil/stencil/internal/packing"
	"github.com/vmstencil/stencil/ovf/conversion"
)

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
	var all []packing.Disk
	defer func() {
		for _, each := range all {
			err = errors.Join(err, each.Content.Close())
		}
	}()
	for _, from := range conversion.Sources(t.Object, made.VM) {
		file, err := files.OpenDisk(folder, from.Claim)
		if err != nil {
			return cli.Usage(fmt.Errorf("the disk of volume %s: %w", from.Volume, err))
		}
		each := packing.Disk{Name: files.DiskName(from.Claim), Volume: from.Volume, CDROM: from.CDROM, Content: file}
		all = append(all, each)
		if all[len(all)-1].Size, err = file.Seek(0, io.SeekEnd); err != nil {
			return cli.Usage(err)
		}
	}
	exported, err := packing.NewOVA(t.Object, vm, all, v1beta1.ExportCompression(c.compression.String()), c.meter)
	if err != nil {
		return cli.Usage(err)
	}
	result := packedResult{File: c.outputFile, Template: t.Object.Name, Files: []listed{}, Notes: append(notes, exported.Notes...)}
	for _, note := range result.Notes {
		fmt.Fprintln(c.streams.Err, note)
	}
	if err := files.CreateFile(c.outputFile, func(file *os.File) error { return exported.Write(ctx, file) }); err != nil {
		return err
	}
	for _, file := range exported.Envelope.Files {
		result.Files = append(result.Files, listed{Name: file.Href, Size: file.Size})
	}
	if !c.format.Is(cli.Table) {
		return c.format.Write(c.streams.Out, result)
	}
	fmt.Fprintln(c.streams.Out, c.outputFile)
	return nil
}

// meter shows how far a disk is.
func (c *converting) meter(d packing.Disk, total int64) (progress func(done int64), end func()) {
	bar := files.NewMeter(c.streams, "writing "+d.Name, total)
	return bar.To, bar.End
}
