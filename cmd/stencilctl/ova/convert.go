package ova

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/files"
	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/formats"
	"github.com/vmstencil/stencil/internal/packing"
	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/ovf/conversion"
	"github.com/vmstencil/stencil/ovf/ova"
)

// How the digests of a package are verified.
const (
	ifPresent = "IfPresent"
	require   = "Require"
	skip      = "Skip"
)

// converting is the command convert.
type converting struct {
	streams      cli.Streams
	choices      choices
	authorities  string
	verification *cli.Format
	// output is the folder for an OVA's content, outputFile the OVA for that of a folder.
	output, outputFile string
	// parameters are values of the template that becomes an OVA.
	parameters []string
	// instancetypes are files with the instance type of that template, and its preference.
	instancetypes []string
	// compression of the disks of the OVA.
	compression *cli.Format
	format      *cli.Format
	folder      files.Folder
}

func newConvert(streams cli.Streams) *cobra.Command {
	c := converting{streams: streams, verification: cli.NewFormat(ifPresent, require, skip), compression: cli.NewFormat(packing.Compressions...), format: newFormat()}
	command := &cobra.Command{
		Use:   "convert FILE --output-folder FOLDER | FOLDER --output-file FILE",
		Short: "Convert an OVA to templates and raw disks, or a template and its disks to an OVA",
		Long: `Convert an OVA to templates, NAME.yaml, and raw disks with holes, CLAIM.raw, in a new folder. What becomes of each item is printed before anything is
written, and the digests of the OVA are verified before that. If anything fails, the folder is removed.

A folder becomes an OVA: its template, which must be the only manifest, and for each disk of which VirtualMachines get a copy, the file CLAIM.raw. The hardware is
that of the VirtualMachine that the template renders, with the CPUs and the memory of its instance type (--instancetype-file).
The template itself is part of the OVA, and Stencil reads it from there. Nothing is overwritten.`,
		Example: `  stencilctl ova convert appliance.ova --output-folder appliance -n golden
  stencilctl ova convert appliance.ova --output-folder appliance --ca vendor.pem --network "VM Network=pod"
  stencilctl ova convert appliance --output-file appliance.ova -p NAME=appliance
  stencilctl ova convert appliance --output-file appliance.ova --instancetype-file u1.medium.yaml -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, paths []string) error { return c.run(command, paths[0]) },
	}
	c.choices.register(command)
	flags := command.Flags()
	flags.StringVar(&c.authorities, "ca", "", "file with certificates of authorities in PEM; the OVA must be signed")
	flags.Var(c.verification, "verification", "whether digests are verified: "+strings.Join([]string{ifPresent, require, skip}, ", "))
	flags.StringVar(&c.output, "output-folder", "", "folder to write, which must not exist")
	flags.StringVar(&c.outputFile, "output-file", "", "OVA to write, which must not exist")
	flags.StringArrayVarP(&c.parameters, "param", "p", nil, "value of a parameter of the template in the folder: NAME=VALUE; may be repeated")
	flags.StringSliceVar(&c.instancetypes, "instancetype-file", nil, "files with the instance type that the template in the folder names, and with its preference")
	flags.Var(c.compression, "compression", "how strongly the disks in the OVA are compressed: "+strings.Join(packing.Compressions, ", "))
	c.format.Register(command, "output", "o")
	cli.Alias(command, "verify", "verification")
	command.MarkFlagsOneRequired("output-folder", "output-file")
	command.MarkFlagsMutuallyExclusive("output-folder", "output-file")
	return command
}

func (c *converting) run(command *cobra.Command, path string) (err error) {
	switch info, err := os.Stat(path); {
	case err != nil:
		return cli.Usage(err)
	case info.IsDir() != (c.output == ""):
		return cli.Usage(errors.New("a folder needs --output-file, and an OVA --output-folder"))
	case info.IsDir():
		if names := c.choices.chosen.Instancetype; names != "" {
			// A folder has no use for the name of an instance type, and this flag took files before.
			fmt.Fprintln(c.streams.Err, "Note: --instancetype of a folder is now --instancetype-file, and its old name will be removed")
			c.instancetypes = append(c.instancetypes, strings.Split(names, ",")...)
		}
		return c.pack(command.Context(), path)
	}
	if command.Flags().Changed("compression") {
		return cli.Usage(errors.New("--compression needs --output-file: disks in a folder are not compressed"))
	}
	options, err := c.choices.options(command)
	if err != nil {
		return err
	}
	o, err := open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	if o.pkg == nil {
		return cli.Usage(fmt.Errorf("%s is a descriptor; convert takes an OVA", path))
	}
	found, err := o.report(path, options)
	if err != nil {
		return err
	}
	if err := c.verify(command.Context(), path, o.pkg); err != nil {
		return err
	}
	if err := found.print(c.streams.Err); err != nil {
		return err
	}
	c.folder = files.Folder{Streams: c.streams, Path: c.output, Quiet: !c.format.Is(cli.Table)}
	if err := files.NewFolder(c.output); err != nil {
		return err
	}
	if err := c.write(command.Context(), o, found.Plan); err != nil {
		return errors.Join(err, os.RemoveAll(c.output))
	}
	if !c.format.Is(cli.Table) {
		found.Written = c.folder.Written
		return c.format.Write(c.streams.Out, found)
	}
	return nil
}

// verify verifies the digests and the signature of the package, as the flags require.
func (c *converting) verify(ctx context.Context, path string, pkg *ova.Package) error {
	roots, err := authorities(c.authorities)
	switch {
	case err != nil:
		return err
	case c.verification.Is(skip) && roots != nil:
		return cli.Usage(errors.New("--ca needs the digests: --verification must not be " + skip))
	case c.verification.Is(skip):
		return nil
	case pkg.Manifest() == nil && c.verification.Is(ifPresent) && roots == nil:
		fmt.Fprintf(c.streams.Err, "%s has no manifest: its content is not verified\n", path)
		return nil
	}
	result, wrong, err := verify(ctx, c.streams, path, pkg, roots)
	if err != nil {
		return err
	}
	if wrong != nil {
		return cli.Usage(fmt.Errorf("%s: %w", path, wrong))
	}
	result.print(c.streams.Err)
	return nil
}

// write writes templates and disks to the folder.
func (c *converting) write(ctx context.Context, o *opened, plan *conversion.Plan) error {
	for _, system := range plan.Systems {
		text, err := yaml.Marshal(system.Template)
		if err != nil {
			return cli.Internal(fmt.Errorf("encoding template %s: %w", system.Template.Name, err))
		}
		if err := c.folder.File(system.Template.Name+".yaml", func(file *os.File) error {
			_, err := file.Write(text)
			return err
		}); err != nil {
			return cli.Internal(err)
		}
		for _, each := range system.Disks {
			if err := c.disk(ctx, o, each); err != nil {
				return err
			}
		}
	}
	return nil
}

// disk writes the raw disk of a file of the package.
func (c *converting) disk(ctx context.Context, o *opened, d conversion.Disk) (err error) {
	wrong := func(err error) error { return cli.Usage(fmt.Errorf("%s: %w", d.File, err)) }
	content, closeContent, err := c.content(ctx, o.pkg, file(o.envelope, d.File))
	if err != nil {
		return wrong(err)
	}
	defer func() { err = errors.Join(err, closeContent()) }()
	start := make([]byte, disk.MagicBytes)
	n, err := content.ReadAt(start, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return wrong(err)
	}
	format, err := packing.Format(d.Format, d.File, d.CDROM, start[:n])
	if err != nil {
		return wrong(err)
	}
	image, err := formats.Open(content, content.Size(), format)
	if err != nil {
		return wrong(err)
	}
	if size := image.Info().Size; d.Capacity >= 0 && size > d.Capacity {
		return wrong(fmt.Errorf("the disk has %d bytes, and %d according to the descriptor", size, d.Capacity))
	}
	data, err := disk.Stored(image)
	if err != nil {
		return wrong(err)
	}
	bar := files.NewMeter(c.streams, "writing "+files.DiskName(d.Claim), data)
	defer bar.End()
	return c.folder.File(files.DiskName(d.Claim), func(file *os.File) error {
		err := disk.WriteRaw(ctx, file, image, disk.Options{Progress: bar.To})
		var malformed *disk.FormatError
		if errors.As(err, &malformed) {
			return wrong(err)
		}
		if err != nil {
			return cli.Internal(err)
		}
		return nil
	})
}

// content returns the bytes of a file of the package. A compressed one is expanded into the folder, in a file that close removes.
func (c *converting) content(ctx context.Context, pkg *ova.Package, f *ovf.File) (content *io.SectionReader, closeContent func() error, err error) {
	if f.Compression == "" {
		return pkg.Raw(f), func() error { return nil }, nil
	}
	from, err := pkg.Content(f)
	if err != nil {
		return nil, nil, err
	}
	expanded, err := os.CreateTemp(c.output, ".expanded-*")
	if err != nil {
		return nil, nil, err
	}
	closeContent = func() error { return errors.Join(expanded.Close(), os.Remove(expanded.Name())) }
	size, err := io.Copy(expanded, files.Interruptible(ctx, from))
	if err != nil {
		return nil, nil, errors.Join(err, closeContent())
	}
	return io.NewSectionReader(expanded, 0, size), closeContent, nil
}

// file returns the file of a package with a name.
func file(e *ovf.Envelope, name string) *ovf.File {
	for i := range e.Files {
		if e.Files[i].Href == name {
			return &e.Files[i]
		}
	}
	return nil
}
