package packing

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/disk/rawzstd"
	"github.com/vmstencil/stencil/oci"
	"github.com/vmstencil/stencil/ovf/conversion"
)

// OCI is the archive of a layout that can be written.
type OCI struct {
	Warnings []string

	config       []byte
	architecture string
	disks        []oci.Disk
	// layers of the disks.
	layers []func(ctx context.Context, w io.Writer) (*rawzstd.Layout, error)
}

// NewOCI makes an artifact of a template, a VirtualMachine that it renders, and its disks. It reads no data.
func NewOCI(t *v1beta1.VirtualMachineTemplate, vm map[string]any, disks []Disk, compression v1beta1.ExportCompression, meter Meter) (*OCI, error) {
	t = t.DeepCopy()
	t.APIVersion, t.Kind = v1beta1.GroupVersion.String(), string(oci.VirtualMachineTemplate)
	raw, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("encoding the template %s: %w", t.Name, err)
	}
	resource, err := oci.DecodeResource(oci.VirtualMachineTemplate, raw)
	if err != nil {
		return nil, err
	}
	o := &OCI{architecture: resource.Architecture()}
	if o.config, err = resource.Encode(); err != nil {
		return nil, err
	}
	claims := map[string]string{}
	for _, from := range conversion.Sources(t, vm) {
		claims[from.Volume] = from.Claim
	}
	// One for all disks, for its memory.
	compressor, err := NewCompressor(compression)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, d := range disks {
		claim := claims[d.Volume]
		if claim == "" {
			o.Warnings = append(o.Warnings, fmt.Sprintf("volume %s: the template makes it from something else than a PersistentVolumeClaim; its disk is not in the package", d.Volume))
			continue
		}
		name := oci.Claim{Name: claim}.Disk()
		if names[name] {
			// Two volumes are copies of one claim.
			continue
		}
		names[name] = true
		layer, err := layer(d, compressor, meter)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name, err)
		}
		o.layers = append(o.layers, layer)
		o.disks = append(o.disks, oci.Disk{Name: name, Size: d.Size})
	}
	return o, nil
}

// layer returns what writes the layer of a disk.
func layer(d Disk, compressor *rawzstd.Compressor, meter Meter) (func(ctx context.Context, w io.Writer) (*rawzstd.Layout, error), error) {
	image, data, err := d.open()
	if err != nil {
		return nil, err
	}
	var progress func(done int64)
	encoder, err := compressor.Encoder(image, func(done int64) { progress(done) })
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, w io.Writer) (*rawzstd.Layout, error) {
		var end func()
		progress, end = meter(d, data)
		defer end()
		return encoder.Write(ctx, w)
	}, nil
}

// Write writes the archive to an empty file.
func (o *OCI) Write(ctx context.Context, file *os.File) error {
	_, err := oci.CreateTar(file, oci.VirtualMachineTemplate, o.config, o.architecture, o.disks, func(w io.Writer, i int) (v1.Descriptor, error) {
		made, err := o.layers[i](ctx, w)
		if err != nil {
			return v1.Descriptor{}, err
		}
		return v1.Descriptor{Size: made.Size, Digest: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(made.Digest[:])}}, nil
	})
	return err
}
