package oci

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/files"
	"github.com/vmstencil/stencil/disk/rawzstd"
	"github.com/vmstencil/stencil/internal/packing"
	"github.com/vmstencil/stencil/internal/registry"
	"github.com/vmstencil/stencil/oci"
)

// pushing is the command push.
type pushing struct {
	streams cli.Streams
	options registry.Options
	format  *cli.Format
	// compression of disks which are no layers yet.
	compression *cli.Format
	// compressor is made for the first disk.
	compressor *rawzstd.Compressor
}

func newPushing(streams cli.Streams, options registry.Options) pushing {
	return pushing{streams: streams, options: options, format: newFormat(), compression: cli.NewFormat(packing.Compressions...)}
}

func (p *pushing) register(command *cobra.Command) {
	command.Flags().BoolVar(&p.options.PlainHTTP, "plain-http", false, "connect to the registry without TLS; on loopback it is not needed")
	command.Flags().Var(p.compression, "compression", "how strongly disks are compressed: "+strings.Join(packing.Compressions, ", "))
	p.format.Register(command, "output", "o")
}

func newPush(streams cli.Streams, options registry.Options) *cobra.Command {
	p := newPushing(streams, options)
	command := &cobra.Command{
		Use:   "push FOLDER|LAYOUT|TAR oci://HOST/REPOSITORY:TAG|TAR",
		Short: "Write a template and its disks as an artifact to a registry or an archive",
		Long: `Write an artifact to a registry, or to a tar archive, which must not exist. It is made of a folder as "ova convert" and "oci pull" write it: one VirtualMachineTemplate or
VirtualMachine, NAME.yaml, and for each PersistentVolumeClaim that it refers to the disk, CLAIM.raw. A layout or an archive is written with the digests it has. What is
written is printed before.

Equal folders become equal artifacts, with the same compression. Layers that the repository has are not sent again. A connection that is cut is continued, five times without progress; after that, or
if the command is interrupted, the same command continues the layer where the registry permits it.`,
		Example: `  stencilctl oci push web oci://registry.example.com/templates/web:v1
  stencilctl oci push web web.oci.tar
  stencilctl oci push export.oci.tar oci://registry.example.com/templates/web:v1`,
		Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			return p.run(command.Context(), arguments[0], arguments[1])
		},
	}
	p.register(command)
	return command
}

// origin is what is pushed.
type origin struct {
	*found
	config []byte
	// content writes the layer of a disk from a byte on.
	content func(ctx context.Context, disk oci.Disk, w io.Writer, offset int64) error
}

func (p *pushing) run(ctx context.Context, from, to string) (err error) {
	t, err := p.target(ctx, to)
	if err != nil {
		return err
	}
	o, err := p.origin(ctx, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.closer()) }()
	planned, err := o.report()
	if err != nil {
		return err
	}
	if err := planned.print(p.streams.Err); err != nil {
		return err
	}
	written, err := p.send(ctx, o, planned.Architecture, t)
	if err != nil {
		return err
	}
	if !p.format.Is(cli.Table) {
		planned.Written = []string{written}
		return p.format.Write(p.streams.Out, planned)
	}
	fmt.Fprintln(p.streams.Out, written)
	return nil
}

// target is where an artifact is written to.
type target struct {
	name string
	// repository is nil for an archive.
	repository *registry.Repository
}

// target checks that an artifact can be written: disks are read for minutes before.
func (p *pushing) target(ctx context.Context, to string) (*target, error) {
	reference, remote := strings.CutPrefix(to, scheme)
	if !remote {
		return &target{name: to}, archivable(to)
	}
	repository, err := registry.Open(reference, p.options)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("%s: %w", to, err))
	}
	if err := repository.Connect(ctx); err != nil {
		return nil, marked(to, err)
	}
	return &target{to, repository}, nil
}

// send writes an artifact, and returns its reference with the digest, or the path of the archive.
func (p *pushing) send(ctx context.Context, o *origin, architecture string, to *target) (string, error) {
	if to.repository == nil {
		return to.name, p.archive(ctx, o, architecture, to.name)
	}
	if err := to.repository.Accepts(o.Artifact); err != nil {
		return "", cli.Usage(err)
	}
	if err := p.upload(ctx, o, to.repository); err != nil {
		return "", marked(to.name, err)
	}
	return scheme + to.repository.Pinned(o.Descriptor.Digest.String()), nil
}

// archivable rejects a path where no archive can be created.
func archivable(path string) error {
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return cli.Usage(fmt.Errorf("%s: %w; an artifact in a registry begins with %s", path, err, scheme))
	}
	return files.Absent(path)
}

// origin opens what is pushed.
func (p *pushing) origin(ctx context.Context, from string) (*origin, error) {
	is, err := isLayout(from)
	if err != nil {
		return nil, err
	}
	if !is {
		return p.folder(ctx, from)
	}
	if !p.compression.Is(packing.Compressions[0]) {
		return nil, cli.Usage(fmt.Errorf("--compression is for a folder with disks, and %s has layers, which are written as they are", from))
	}
	f, err := (&reader{}).open(ctx, from)
	if err != nil {
		return nil, err
	}
	o := &origin{found: f}
	if o.config, err = f.layout.Content(f.Config); err != nil {
		return nil, errors.Join(marked(from, err), f.closer())
	}
	o.content = func(ctx context.Context, disk oci.Disk, w io.Writer, offset int64) error {
		return registry.Reopened(func(ctx context.Context) (io.ReadCloser, error) {
			blob, err := f.layout.Blob(disk.Layer)
			return struct {
				io.Reader
				io.Closer
			}{files.Interruptible(ctx, blob), blob}, err
		})(ctx, w, offset)
	}
	return o, nil
}

// archive writes a tar archive.
func (p *pushing) archive(ctx context.Context, o *origin, architecture, path string) error {
	return files.Create(path, func(w io.Writer) error {
		err := oci.WriteTar(w, o.Artifact, o.config, architecture, func(w io.Writer, disk oci.Disk) error {
			bar := files.NewMeter(p.streams, "writing "+disk.Name, disk.Layer.Size)
			defer bar.End()
			return o.content(ctx, disk, io.MultiWriter(w, bar), 0)
		})
		if err != nil {
			return marked(o.from, err)
		}
		return nil
	})
}

// upload writes layers and config to a repository, and then the manifest.
func (p *pushing) upload(ctx context.Context, o *origin, repository *registry.Repository) error {
	for _, disk := range o.Disks {
		bar := files.NewMeter(p.streams, "sending "+disk.Name, disk.Layer.Size)
		err := repository.Upload(ctx, disk.Layer, func(ctx context.Context, w io.Writer, offset int64) error { return o.content(ctx, disk, w, offset) }, bar.To)
		bar.End()
		if err != nil {
			return fmt.Errorf("sending the disk %s: %w", disk.Name, err)
		}
	}
	config := func(_ context.Context, w io.Writer, offset int64) error {
		_, err := w.Write(o.config[offset:])
		return err
	}
	if err := repository.Upload(ctx, o.Config, config, func(int64) {}); err != nil {
		return fmt.Errorf("sending the config: %w", err)
	}
	return repository.Tag(ctx, o.Artifact)
}

// hash is a digest of sha256.
func hash(sum [32]byte) v1.Hash { return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])} }
