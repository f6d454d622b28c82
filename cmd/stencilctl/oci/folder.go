package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/files"
	images "github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/rawzstd"
	"github.com/vmstencil/stencil/internal/packing"
	"github.com/vmstencil/stencil/oci"
)

// raw is a disk of a folder.
type raw struct {
	file    *os.File
	image   images.Image
	encoder *rawzstd.Encoder
	layout  *rawzstd.Layout
	// bar is shown while the disk is measured.
	bar *files.Meter
}

// folder makes an artifact of a folder with a template and its disks. Each disk is compressed once for its digest, and again when it is written.
func (p *pushing) folder(ctx context.Context, path string) (_ *origin, err error) {
	o := &origin{found: &found{from: path}}
	if o.resource, err = resourceIn(path); err != nil {
		return nil, err
	}
	if o.config, err = o.resource.Encode(); err != nil {
		return nil, marked(path, err)
	}
	claims, err := o.resource.Claims()
	if err != nil {
		return nil, marked(path, err)
	}
	disks := map[string]*raw{}
	o.closer = func() (err error) {
		for _, each := range disks {
			err = errors.Join(err, each.file.Close())
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.closer())
		}
	}()
	var made []oci.Disk
	for _, claim := range claims {
		file, err := files.OpenDisk(path, claim.Name)
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("the disk of the claim %s: %w", claim.Name, err))
		}
		each := &raw{file: file}
		disks[claim.Disk()] = each
		if err := each.open(); err != nil {
			return nil, err
		}
		if err := p.measure(ctx, each, each.image); err != nil {
			return nil, err
		}
		made = append(made, oci.Disk{Name: claim.Disk(), Size: each.image.Info().Size, Layer: v1.Descriptor{Size: each.layout.Size, Digest: hash(each.layout.Digest)}})
	}
	if o.Artifact, err = oci.Encode(o.resource.Kind, o.config, made); err != nil {
		return nil, marked(path, err)
	}
	o.content = func(ctx context.Context, disk oci.Disk, w io.Writer, offset int64) error {
		each := disks[disk.Name]
		return each.encoder.WriteFrom(ctx, w, each.layout, offset)
	}
	return o, nil
}

func (r *raw) wrong(err error) error { return cli.Usage(fmt.Errorf("%s: %w", r.file.Name(), err)) }

// open opens the image in the file.
func (r *raw) open() error {
	size, err := r.file.Seek(0, io.SeekEnd)
	if err == nil {
		r.image, err = images.OpenRaw(r.file, size)
	}
	if err != nil {
		return r.wrong(err)
	}
	return nil
}

// measure computes size and digest of the layer with a content.
func (p *pushing) measure(ctx context.Context, r *raw, content images.Image) error {
	if p.compressor == nil {
		// One for all disks and both passes, for its memory.
		made, err := packing.NewCompressor(v1beta1.ExportCompression(p.compression.String()))
		if err != nil {
			return cli.Internal(err)
		}
		p.compressor = made
	}
	stored, err := images.Stored(content)
	if err != nil {
		return r.wrong(err)
	}
	r.bar = files.NewMeter(p.streams, "measuring "+filepath.Base(r.file.Name()), stored)
	if r.encoder, err = p.compressor.Encoder(content, func(done int64) {
		if r.bar != nil {
			r.bar.To(done)
		}
	}); err != nil {
		return r.wrong(err)
	}
	r.layout, err = r.encoder.Layout(ctx)
	r.bar.End()
	if r.bar = nil; err != nil {
		return cli.Internal(fmt.Errorf("%s: %w", r.file.Name(), err))
	}
	return nil
}

// resourceIn reads the VirtualMachineTemplate or VirtualMachine in a folder.
func resourceIn(folder string) (*oci.Resource, error) {
	path, err := files.ManifestIn(folder)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, cli.Usage(err)
	}
	object, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("%s: %w", path, err))
	}
	var is struct {
		Kind oci.Kind `json:"kind"`
	}
	kind := oci.VirtualMachine
	if err := json.Unmarshal(object, &is); err != nil || is.Kind != kind {
		kind = oci.VirtualMachineTemplate
		t, err := files.TemplateIn(folder)
		if err != nil {
			return nil, err
		}
		t.Object.APIVersion, t.Object.Kind = v1beta1.GroupVersion.String(), string(kind)
		if object, err = json.Marshal(t.Object); err != nil {
			return nil, cli.Internal(err)
		}
	}
	resource, err := oci.DecodeResource(kind, object)
	if err != nil {
		return nil, marked(path, err)
	}
	return resource, nil
}
