package oci

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/files"
	"github.com/vmstencil/stencil/disk/rawzstd"
	"github.com/vmstencil/stencil/internal/registry"
	"github.com/vmstencil/stencil/oci"
)

// partial is the suffix of the folder with what was received of an artifact.
const partial = ".partial"

// pulling is the command pull.
type pulling struct {
	reader
	streams cli.Streams
	format  *cli.Format
	output  string
}

func newPull(streams cli.Streams, options registry.Options) *cobra.Command {
	p := pulling{reader: reader{options: options}, streams: streams, format: newFormat()}
	command := &cobra.Command{
		Use:   "pull ARTIFACT --output-folder FOLDER",
		Short: "Write the template and the disks of an artifact to a folder",
		Long: `Write the VirtualMachineTemplate or VirtualMachine of an artifact, NAME.yaml, and its disks, CLAIM.raw with holes, to a new folder. What is written is printed
before. Sizes and digests are verified; if something is wrong, nothing is left.

Layers of a registry are received in FOLDER.partial first, and verified there. A connection that is cut is continued, five times without progress. If that fails, or the command is
interrupted, FOLDER.partial stays, and the same command continues with it.`,
		Example: `  stencilctl oci pull oci://registry.example.com/templates/web:v1 --output-folder web
  stencilctl oci pull oci://registry.example.com/templates/web@sha256:… --output-folder web --key cosign.pub
  stencilctl oci pull export.oci.tar --output-folder web`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error { return p.run(command.Context(), arguments[0]) },
	}
	p.register(command)
	p.format.Register(command, "output", "o")
	command.Flags().StringVar(&p.output, "output-folder", "", "folder to write, which must not exist")
	// It fails only for a flag that does not exist.
	_ = command.MarkFlagRequired("output-folder")
	return command
}

func (p *pulling) run(ctx context.Context, from string) (err error) {
	p.output = filepath.Clean(p.output)
	if err := files.Absent(p.output); err != nil {
		return err
	}
	f, err := p.open(ctx, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.closer()) }()
	planned, err := f.report()
	if err != nil {
		return err
	}
	if p.key != "" {
		signed, err := p.signed(ctx, f)
		if err != nil {
			return err
		}
		if !signed {
			return cli.Usage(fmt.Errorf("%s is not signed by the key in %s", from, p.key))
		}
		planned.Signed = &signed
	}
	if err := planned.print(p.streams.Err); err != nil {
		return err
	}
	if f.repository != nil {
		err = p.writeReceived(ctx, f, planned)
	} else {
		err = p.write(ctx, f, planned)
	}
	if err != nil {
		return err
	}
	if !p.format.Is(cli.Table) {
		return p.format.Write(p.streams.Out, planned)
	}
	return nil
}

// writeReceived writes an artifact of a registry. The partial folder stays if receiving or writing fails, unless the artifact is malformed.
func (p *pulling) writeReceived(ctx context.Context, f *found, planned *report) (err error) {
	folder := p.output + partial
	lock, err := files.NewLock(folder + ".lock")
	if errors.Is(err, files.ErrLocked) {
		return cli.Usage(fmt.Errorf("another pull writes to %s: wait until it ends, or name another folder", p.output))
	}
	if err != nil {
		return cli.Usage(err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	// Another pull may have ended since the folder was looked for.
	if err := files.Absent(p.output); err != nil {
		return err
	}
	if err = p.receive(ctx, f); err == nil {
		err = p.write(ctx, f, planned)
	}
	if err == nil || malformed(err) {
		err = errors.Join(err, os.RemoveAll(folder))
	}
	return err
}

// receive downloads the layers of a registry to the partial folder, which is then a layout.
func (p *pulling) receive(ctx context.Context, f *found) (err error) {
	folder := p.output + partial
	if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(oci.BlobName(f.Config.Digest))), 0o755); err != nil {
		return cli.Usage(err)
	}
	err = p.download(ctx, f, folder)
	if malformed(err) {
		return marked(f.from, err)
	}
	if err != nil {
		return marked(f.from, fmt.Errorf("%w; what was received stays in %s: run the command again to continue, or remove the folder", err, folder))
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return cli.Internal(err)
	}
	f.closer = root.Close
	f.layout = oci.NewLayout(f.Artifact, f.resource, root.FS())
	return nil
}

func (p *pulling) download(ctx context.Context, f *found, folder string) error {
	for _, each := range f.Disks {
		file, err := os.OpenFile(filepath.Join(folder, filepath.FromSlash(oci.BlobName(each.Layer.Digest))), os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		bar := files.NewMeter(p.streams, "receiving "+each.Name, each.Layer.Size)
		err = f.repository.Download(ctx, each.Layer, file, bar.To)
		bar.End()
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("receiving the disk %s: %w", each.Name, err)
		}
	}
	return nil
}

// write writes the resource and the disks to a new folder, and removes it if that fails.
func (p *pulling) write(ctx context.Context, f *found, planned *report) error {
	text, err := yaml.Marshal(f.resource.Object)
	if err != nil {
		return cli.Internal(err)
	}
	if err := files.NewFolder(p.output); err != nil {
		return err
	}
	folder := files.Folder{Streams: p.streams, Path: p.output, Quiet: !p.format.Is(cli.Table)}
	err = folder.File(planned.Manifest, func(file *os.File) error {
		_, err := file.Write(text)
		return err
	})
	for i, each := range f.Disks {
		if err == nil {
			err = folder.File(planned.Disks[i].File, func(file *os.File) error { return p.disk(ctx, f, each, file) })
		}
	}
	if err != nil {
		return errors.Join(cli.Internal(err), os.RemoveAll(p.output))
	}
	planned.Written = folder.Written
	return nil
}

// disk expands a layer to a raw disk.
func (p *pulling) disk(ctx context.Context, f *found, from oci.Disk, file *os.File) error {
	blob, err := f.layout.Blob(from.Layer)
	if err != nil {
		return marked(f.from, err)
	}
	bar := files.NewMeter(p.streams, "writing "+filepath.Base(file.Name()), from.Size)
	err = rawzstd.WriteRaw(ctx, file, blob, from.Size, bar.To)
	bar.End()
	err = errors.Join(err, blob.Close())
	if malformed(err) {
		return cli.Usage(fmt.Errorf("%s: the disk %s: %w", f.from, from.Name, err))
	}
	return err
}

// malformed reports whether an artifact is the cause of an error.
func malformed(err error) bool {
	var artifact *oci.Error
	var stream *rawzstd.StreamError
	return errors.As(err, &artifact) || errors.As(err, &stream)
}
