package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/files"
	images "github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/qcow2"
	"github.com/vmstencil/stencil/internal/registry"
	"github.com/vmstencil/stencil/oci"
	"github.com/vmstencil/stencil/oci/containerdisk"
)

// imaging is the command container-disk.
type imaging struct {
	pushing
	architecture string
}

func newContainerDisk(streams cli.Streams, options registry.Options) *cobra.Command {
	i := imaging{pushing: newPushing(streams, options)}
	command := &cobra.Command{
		Use:   "container-disk FOLDER|DISK oci://HOST/REPOSITORY:TAG|TAR",
		Short: "Write disks as container images that KubeVirt and CDI read",
		Long: `Write disks as container images (containerDisks) to a registry, or one disk to a tar archive, which must not exist. DISK is a raw disk, or a qcow2 image if its name ends
with .qcow2, which is stored as it is. FOLDER has a template and its disks, as for "oci push": each disk becomes an image. If there are several, their claims
are appended to the repository: HOST/REPOSITORY-CLAIM:TAG. What is written is printed before.

Equal disks become equal images. Layers that the repository has are not sent again.`,
		Example: `  stencilctl oci container-disk web oci://registry.example.com/disks/web:v1
  stencilctl oci container-disk fedora.qcow2 oci://registry.example.com/disks/fedora:44 --architecture arm64
  stencilctl oci container-disk fedora.raw fedora.oci.tar`,
		Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			return i.run(command.Context(), arguments[0], arguments[1])
		},
	}
	i.register(command)
	command.Flags().StringVar(&i.architecture, "architecture", "", "architecture of the images (default that of the template, or amd64)")
	return command
}

// image is a disk that becomes an image. Its JSON form is output.
type image struct {
	// Disk is the path of the disk, Claim its PersistentVolumeClaim in the template of a folder.
	Disk         string        `json:"disk"`
	Claim        string        `json:"claim,omitempty"`
	Format       images.Format `json:"format"`
	Architecture string        `json:"architecture"`
	// Size of the disk in bytes, Stored the size of the layer.
	Size   int64  `json:"size"`
	Stored int64  `json:"stored"`
	Digest string `json:"digest"`
	// Image is the reference with the digest, or the path of the archive.
	Image string `json:"image"`

	raw raw
	to  *target
}

// written is the JSON form of the result.
type written struct {
	Images []*image `json:"images"`
}

func (i *imaging) run(ctx context.Context, from, to string) (err error) {
	disks, err := i.disks(from)
	if err != nil {
		return err
	}
	defer func() {
		for _, each := range disks {
			if each.raw.file != nil {
				err = errors.Join(err, each.raw.file.Close())
			}
		}
	}()
	rows := [][]string{{"DISK", "FORMAT", "SIZE", "IMAGE"}}
	for _, each := range disks {
		if err := each.open(); err != nil {
			return err
		}
		at, err := i.destination(from, to, each.Claim, len(disks))
		if err != nil {
			return err
		}
		if each.to, err = i.target(ctx, at); err != nil {
			return err
		}
		rows = append(rows, []string{each.Disk, string(each.Format), files.Quantity(each.Size), at})
	}
	if err := cli.Columns(i.streams.Err, rows...); err != nil {
		return cli.Internal(err)
	}
	for _, each := range disks {
		if err := i.write(ctx, each); err != nil {
			return err
		}
		if i.format.Is(cli.Table) {
			fmt.Fprintln(i.streams.Out, each.Image)
		}
	}
	if !i.format.Is(cli.Table) {
		return i.format.Write(i.streams.Out, written{disks})
	}
	return nil
}

// disks returns the disk at a path, or those of the template in a folder.
func (i *imaging) disks(path string) ([]*image, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, cli.Usage(err)
	}
	if !info.IsDir() {
		format := images.Raw
		if strings.HasSuffix(path, "."+string(images.QCOW2)) {
			format = images.QCOW2
		}
		architecture := i.architecture
		if architecture == "" {
			architecture = oci.DefaultArchitecture
		}
		return []*image{{Disk: path, Format: format, Architecture: architecture}}, nil
	}
	resource, err := resourceIn(path)
	if err != nil {
		return nil, err
	}
	claims, err := resource.Claims()
	if err != nil {
		return nil, marked(path, err)
	}
	if len(claims) == 0 {
		return nil, cli.Usage(fmt.Errorf("%s: the %s %s refers to no disks", path, resource.Kind, resource.Name()))
	}
	architecture := i.architecture
	if architecture == "" {
		architecture = resource.Architecture()
	}
	var all []*image
	for _, claim := range claims {
		all = append(all, &image{Disk: filepath.Join(path, files.DiskName(claim.Name)), Claim: claim.Name, Format: images.Raw, Architecture: architecture})
	}
	return all, nil
}

// destination returns where the image of a disk is written.
func (i *imaging) destination(from, to, claim string, count int) (string, error) {
	if count == 1 {
		return to, nil
	}
	reference, remote := strings.CutPrefix(to, scheme)
	if !remote {
		return "", cli.Usage(fmt.Errorf("%s has %d disks, and an archive has one: name the file of a disk", from, count))
	}
	tag, err := name.NewTag(reference, name.StrictValidation)
	if err != nil {
		return "", cli.Usage(fmt.Errorf("%s: %w; several disks need HOST/REPOSITORY:TAG, to which the names of claims are appended", to, err))
	}
	return scheme + tag.Context().Name() + "-" + claim + ":" + tag.TagStr(), nil
}

// open opens the file and checks its format, which KubeVirt detects again.
func (m *image) open() (err error) {
	if m.raw.file, err = os.Open(m.Disk); err != nil {
		return cli.Usage(err)
	}
	if err := m.raw.open(); err != nil {
		return err
	}
	m.Size = m.raw.image.Info().Size
	if m.Format == images.QCOW2 {
		disk, err := qcow2.Open(m.raw.file, m.Size)
		if err != nil {
			return m.raw.wrong(err)
		}
		m.Size = disk.Info().Size
		return nil
	}
	found, err := images.Detect(m.raw.file, m.Size)
	if err != nil {
		return m.raw.wrong(err)
	}
	if found != images.Raw {
		return m.raw.wrong(fmt.Errorf("a raw disk that begins like a %s image, as which KubeVirt would read it: convert it to a raw disk first, or name a qcow2 image NAME.qcow2", found))
	}
	return nil
}

// write computes the image of a disk and writes it.
func (i *imaging) write(ctx context.Context, m *image) error {
	layer, err := containerdisk.NewLayer(m.Format, m.raw.image)
	if err != nil {
		return cli.Internal(err)
	}
	bar := files.NewMeter(i.streams, "reading "+filepath.Base(m.Disk), layer.Info().Size)
	diffID, err := layer.DiffID(ctx, bar.To)
	bar.End()
	if err != nil {
		return m.raw.wrong(err)
	}
	if err := i.measure(ctx, &m.raw, layer); err != nil {
		return err
	}
	encoder, layout := m.raw.encoder, m.raw.layout
	o := &origin{found: &found{from: m.Disk}, content: func(ctx context.Context, _ oci.Disk, w io.Writer, offset int64) error {
		return encoder.WriteFrom(ctx, w, layout, offset)
	}}
	label := strings.TrimSuffix(filepath.Base(m.Disk), filepath.Ext(m.Disk))
	o.Artifact, o.config, err = containerdisk.Encode(m.Architecture, diffID, oci.Disk{Name: label, Size: layer.Info().Size, Layer: v1.Descriptor{Size: layout.Size, Digest: hash(layout.Digest)}})
	if err != nil {
		return cli.Internal(err)
	}
	m.Stored, m.Digest = layout.Size, o.Descriptor.Digest.String()
	m.Image, err = i.send(ctx, o, m.Architecture, m.to)
	// As containerDisk.image of a VirtualMachine takes it.
	m.Image = strings.TrimPrefix(m.Image, scheme)
	return err
}
