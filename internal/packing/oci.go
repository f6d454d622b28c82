package packing

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/rawzstd"
	"github.com/vmstencil/stencil/oci"
	"github.com/vmstencil/stencil/ovf/conversion"
)

// OCI is the archive of a layout that can be written.
type OCI struct {
	*oci.Artifact
	Warnings []string

	config       []byte
	architecture string
	// layers are by the names of the disks in the artifact.
	layers map[string]*layer
}

// layer is a disk.
type layer struct {
	disk    Disk
	encoder *rawzstd.Encoder
	layout  *rawzstd.Layout
	total   int64
	meter   Meter
	done    func(int64)
}

// NewOCI makes an artifact of a template, a VirtualMachine that it renders, and its disks, of which digests are computed.
func NewOCI(ctx context.Context, t *v1beta1.VirtualMachineTemplate, vm map[string]any, disks []Disk, meter Meter) (*OCI, error) {
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
	o := &OCI{architecture: resource.Architecture(), layers: map[string]*layer{}}
	if o.config, err = resource.Encode(); err != nil {
		return nil, err
	}
	claims := map[string]string{}
	for _, from := range conversion.Sources(t, vm) {
		claims[from.Volume] = from.Claim
	}
	// One for all disks and both passes, for its memory.
	compressor, err := rawzstd.NewCompressor(0)
	if err != nil {
		return nil, err
	}
	var made []oci.Disk
	for _, d := range disks {
		claim := claims[d.Volume]
		if claim == "" {
			o.Warnings = append(o.Warnings, fmt.Sprintf("volume %s: the template makes it from something else than a PersistentVolumeClaim; its disk is not in the package", d.Volume))
			continue
		}
		name := oci.Claim{Name: claim}.Disk()
		if o.layers[name] != nil {
			// Two volumes are copies of one claim.
			continue
		}
		l := &layer{disk: d, meter: meter}
		if err := l.measure(ctx, compressor); err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name, err)
		}
		o.layers[name] = l
		made = append(made, oci.Disk{Name: name, Size: d.Size, Layer: v1.Descriptor{Size: l.layout.Size, Digest: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(l.layout.Digest[:])}}})
	}
	o.Artifact, err = oci.Encode(oci.VirtualMachineTemplate, o.config, made)
	return o, err
}

// measure computes size and digest.
func (l *layer) measure(ctx context.Context, compressor *rawzstd.Compressor) error {
	image, err := disk.OpenRaw(l.disk.Content, l.disk.Size)
	if err != nil {
		return err
	}
	if l.total, err = disk.Stored(image); err != nil {
		return err
	}
	if l.encoder, err = compressor.Encoder(image, func(done int64) { l.done(done) }); err != nil {
		return err
	}
	var end func()
	l.done, end = l.meter(l.disk, Measuring, l.total)
	defer end()
	l.layout, err = l.encoder.Layout(ctx)
	return err
}

// Write writes the archive.
func (o *OCI) Write(ctx context.Context, w io.Writer) error {
	return oci.WriteTar(w, o.Artifact, o.config, o.architecture, func(w io.Writer, d oci.Disk) error {
		l := o.layers[d.Name]
		var end func()
		l.done, end = l.meter(l.disk, Writing, l.total)
		defer end()
		return l.encoder.WriteFrom(ctx, w, l.layout, 0)
	})
}
