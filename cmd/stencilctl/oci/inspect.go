package oci

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/internal/registry"
)

// inspecting is the command inspect.
type inspecting struct {
	reader
	streams  cli.Streams
	format   *cli.Format
	resource bool
}

func newInspect(streams cli.Streams, options registry.Options) *cobra.Command {
	i := inspecting{reader: reader{options: options}, streams: streams, format: newFormat()}
	command := &cobra.Command{
		Use:   "inspect ARTIFACT",
		Short: "Show what an artifact contains, and what a pull writes",
		Long: `Show what an artifact contains, and what a pull writes. Only the manifest and the resource are read and verified. With --key the exit code is 1 if the artifact
is not signed by the key.`,
		Example: `  stencilctl oci inspect oci://registry.example.com/templates/web:v1
  stencilctl oci inspect export.oci.tar -o json
  stencilctl oci inspect oci://registry.example.com/templates/web:v1 --resource`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error { return i.run(command.Context(), arguments[0]) },
	}
	i.format.Register(command, "output", "o")
	i.register(command)
	command.Flags().BoolVar(&i.resource, "resource", false, "print the VirtualMachineTemplate or VirtualMachine as YAML")
	return command
}

func (i *inspecting) run(ctx context.Context, from string) (err error) {
	f, err := i.open(ctx, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.closer()) }()
	r, err := f.report()
	if err != nil {
		return err
	}
	if i.key != "" {
		signed, err := i.signed(ctx, f)
		if err != nil {
			return err
		}
		r.Signed = &signed
	}
	if err := i.print(f, r); err != nil {
		return cli.Internal(err)
	}
	if r.Signed != nil && !*r.Signed {
		return cli.ErrFindings
	}
	return nil
}

func (i *inspecting) print(f *found, r *report) error {
	if i.resource {
		text, err := yaml.Marshal(f.resource.Object)
		if err != nil {
			return err
		}
		_, err = i.streams.Out.Write(text)
		return err
	}
	if !i.format.Is(cli.Table) {
		return i.format.Write(i.streams.Out, r)
	}
	return r.print(i.streams.Out)
}
