package ova

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/files"
	"github.com/vmstencil/stencil/internal/packing"
	"github.com/vmstencil/stencil/ovf/conversion"
)

// inspecting is the command inspect.
type inspecting struct {
	streams    cli.Streams
	format     *cli.Format
	choices    choices
	descriptor bool
}

// newFormat returns the formats of the commands, which print text by default.
func newFormat() *cli.Format { return cli.NewFormat(cli.Table, cli.JSON, cli.YAML) }

// report is what inspect prints. Its JSON form is output.
type report struct {
	File string `json:"file"`
	// Version of OVF.
	Version string `json:"version"`
	// Files are the files of the package apart from the descriptor.
	Files []listed `json:"files"`
	// Signer is the subject of the certificate, which was not verified; empty if the package is not signed.
	Signer string `json:"signer,omitempty"`
	// Manifest is present if the package has one, and it was not verified.
	Manifest *manifest        `json:"manifest,omitempty"`
	Plan     *conversion.Plan `json:"plan"`
	// Written are the files that convert has written.
	Written []string `json:"written,omitempty"`
}

type manifest struct {
	// Weak is set if a digest is SHA-1.
	Weak bool `json:"weak"`
}

// listed is a file of the package.
type listed struct {
	Name string `json:"name"`
	// Size is in bytes, as the file is stored; -1 if it is not known.
	Size        int64  `json:"size"`
	Compression string `json:"compression,omitempty"`
}

func newInspect(streams cli.Streams) *cobra.Command {
	i := inspecting{streams: streams, format: newFormat()}
	command := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Show what an OVA contains, and what an import makes of it",
		Long: `Show what an OVA contains, and what an import makes of it: the templates, their disks, and what becomes of each item. Nothing is written, and neither
digests nor the signature are verified: see "ova validate". FILE can also be a descriptor (.ovf).`,
		Example: `  stencilctl ova inspect appliance.ova
  stencilctl ova inspect appliance.ova -n golden --network "VM Network=pod" -o yaml
  stencilctl ova inspect appliance.ova --descriptor`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, paths []string) error { return i.run(command, paths[0]) },
	}
	i.format.Register(command, "output", "o")
	i.choices.register(command)
	command.Flags().BoolVar(&i.descriptor, "descriptor", false, "print the descriptor as it is")
	return command
}

func (i *inspecting) run(command *cobra.Command, path string) (err error) {
	options, err := i.choices.options(command)
	if err != nil {
		return err
	}
	o, err := open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	if i.descriptor {
		return i.printDescriptor(o)
	}
	found, err := o.report(path, options)
	if err != nil {
		return err
	}
	if !i.format.Is(cli.Table) {
		return i.format.Write(i.streams.Out, found)
	}
	return found.print(i.streams.Out)
}

func (i *inspecting) printDescriptor(o *opened) error {
	if o.pkg == nil {
		return cli.Usage(errors.New("--descriptor needs an OVA"))
	}
	if _, err := i.streams.Out.Write(o.pkg.Descriptor()); err != nil {
		return cli.Internal(fmt.Errorf("writing the output: %w", err))
	}
	return nil
}

// report returns what an import makes of the package.
func (o *opened) report(path string, options conversion.Options) (*report, error) {
	found := &report{File: path, Version: string(o.envelope.Version), Files: []listed{}}
	for _, file := range o.envelope.Files {
		found.Files = append(found.Files, listed{Name: file.Href, Size: file.Size, Compression: file.Compression})
	}
	if o.pkg != nil {
		if certificate := o.pkg.Certificate(); certificate != nil {
			found.Signer = subject(certificate.Chain)
		}
		if present := o.pkg.Manifest(); present != nil {
			found.Manifest = &manifest{Weak: present.Weak()}
		}
	}
	o.examine()
	var err error
	if options.Template, err = o.template(conversion.EmbeddedFile(o.envelope), conversion.MaxTemplateBytes); err == nil {
		found.Plan, err = conversion.Import(o.envelope, options)
	}
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("%s: %w", path, err))
	}
	return found, nil
}

func subject(chain []*x509.Certificate) string {
	if len(chain) == 0 {
		return ""
	}
	return chain[0].Subject.String()
}

// print prints a report as text.
func (found *report) print(out io.Writer) error {
	fmt.Fprintf(out, "%s: OVF %s, %s, %s, %s\n", found.File, found.Version, cli.Count(len(found.Plan.Systems), "virtual system", "virtual systems"),
		cli.Count(len(found.Files), "file", "files"), found.signed())
	for _, note := range found.Plan.Notes {
		fmt.Fprintln(out, note)
	}
	sizes := map[string]int64{}
	for _, file := range found.Files {
		sizes[file.Name] = file.Size
	}
	for _, system := range found.Plan.Systems {
		fmt.Fprintf(out, "\nvirtual system %s becomes VirtualMachineTemplate %s\n", system.System, system.Template.Name)
		if system.Restored {
			fmt.Fprintln(out, "  it is the template that the package carries")
		}
		if system.Configuration != "" {
			fmt.Fprintf(out, "  deployment option %s\n", system.Configuration)
		}
		if err := disks(out, system.Disks, sizes); err != nil {
			return err
		}
		rows := make([][]string, 0, len(system.Notes))
		for _, note := range system.Notes {
			rows = append(rows, []string{"  " + string(note.Action), note.Source, note.Result})
		}
		if err := cli.Columns(out, rows...); err != nil {
			return err
		}
	}
	return nil
}

func (found *report) signed() string {
	switch {
	case found.Manifest == nil:
		return "without a manifest"
	case found.Signer != "":
		return "signed by " + strconv.Quote(found.Signer)
	case found.Manifest.Weak:
		return "with a manifest of SHA-1, not signed"
	default:
		return "not signed"
	}
}

func disks(out io.Writer, disks []conversion.Disk, sizes map[string]int64) error {
	if len(disks) == 0 {
		return nil
	}
	rows := [][]string{{"  VOLUME", "FILE", "FORMAT", "STORED", "CAPACITY", "CLAIM"}}
	for _, disk := range disks {
		rows = append(rows, []string{"  " + disk.Volume, disk.File, format(disk), files.Quantity(sizes[disk.File]), files.Quantity(disk.Capacity), disk.Claim})
	}
	return cli.Columns(out, rows...)
}

// format returns the short name of the format of a disk.
func format(disk conversion.Disk) string {
	known, err := packing.Format(disk.Format, disk.File, disk.CDROM, nil)
	switch {
	case err != nil:
		return disk.Format
	case disk.CDROM:
		return "iso"
	default:
		return string(known)
	}
}
