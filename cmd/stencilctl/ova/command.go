package ova

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/transfers"
	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/ovf/ova"
)

// NewCommand returns the group of commands.
func NewCommand(streams cli.Streams) *cobra.Command {
	command := &cobra.Command{
		Use:   "ova",
		Short: "Inspect, validate, convert, sign, import and export OVAs",
		Long: `Inspect, validate, convert, sign, import and export OVAs: packages of virtual machines that VMware, VirtualBox and others write.

The commands read files and need no cluster, except for import and export.`,
	}
	command.AddCommand(newInspect(streams), newValidate(streams), newConvert(streams), newSign(streams),
		transfers.NewImport(streams, v1beta1.ExportOVA), transfers.NewExport(streams, v1beta1.ExportOVA),
		transfers.NewUpload(streams, v1beta1.ExportOVA))
	return command
}

// opened is an OVA, or a descriptor that lies beside its files.
type opened struct {
	file *os.File
	// pkg is nil for a descriptor.
	pkg      *ova.Package
	envelope *ovf.Envelope
}

func (o *opened) Close() error { return o.file.Close() }

// open opens an OVA, or a descriptor if the name ends with .ovf.
func open(path string) (*opened, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, cli.Usage(err)
	}
	o := &opened{file: file}
	if err := o.read(path); err != nil {
		return nil, cli.Usage(errors.Join(fmt.Errorf("%s: %w", path, err), file.Close()))
	}
	return o, nil
}

func (o *opened) read(path string) (err error) {
	if strings.HasSuffix(path, ".ovf") {
		o.envelope, err = ovf.Decode(o.file)
		return err
	}
	size, err := o.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if o.pkg, err = ova.Open(o.file, size); err != nil {
		return err
	}
	o.envelope = o.pkg.Envelope()
	return nil
}

// template returns the content of the template that the package carries, and nil if there is none.
func (o *opened) template(file *ovf.File, limit int64) ([]byte, error) {
	if file == nil || o.pkg == nil {
		return nil, nil
	}
	content, err := o.pkg.Content(file)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(content, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("the template in %s has more than %d bytes", file.Href, limit)
	}
	return text, nil
}
