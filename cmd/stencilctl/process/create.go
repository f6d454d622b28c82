package process

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
)

// NewCreate returns the command create.
func NewCreate(streams cli.Streams) *cobra.Command {
	p := processing{
		streams: streams, create: true, did: "created",
		format: cli.NewFormat(cli.Table, cli.YAML, cli.JSON, cli.Name), dryRun: &cli.DryRun{},
	}
	command := &cobra.Command{
		Use:   "create [NAME | NAMESPACE/NAME | FILE.yaml | -f FILE]",
		Short: "Create a VirtualMachine from a template",
		Long: `Create a VirtualMachine from a template.

It is created in the namespace of -n, or of the context: NAMESPACE/NAME is a template of another one. NAME is a template of the namespace of
-n, and --target-namespace then puts the VirtualMachine into another one. The output has the NAMESPACE/NAME of what was created.

From a template of the cluster the cluster creates it, which takes the permission to create virtualmachinetemplates/create and
none on VirtualMachines. Without that permission it is created with your rights, as a manifest that refers to the template, which takes verb use on the
template and the permission to create VirtualMachines; the cluster renders it, too. From a template in a file, or with --local, it is rendered here and created with your rights.

On a terminal the command prompts for the parameters that need a value; for a template of the cluster that takes permission to get
it. Otherwise missing values are an error.`,
		Example: `  stencilctl create golden/fedora -n team-a -p NAME=web-1
  stencilctl create -f windows.yaml -n team-a`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error { return p.runCreate(command.Context(), names) },
	}
	p.register(command)
	p.dryRun.Register(command)
	return command
}

func (p *processing) runCreate(ctx context.Context, names []string) error {
	name, err := p.named(names)
	if err != nil {
		return err
	}
	given, err := templates.Values(p.reader, p.parameters, p.valuesFile)
	if err != nil {
		return err
	}
	made, err := p.complete(ctx, name, given)
	if err != nil {
		return err
	}
	return p.show(made)
}

// complete prompts for missing values, and creates the VirtualMachine.
func (p *processing) complete(ctx context.Context, name string, given map[string]string) (*result, error) {
	remote := name != "" && !p.local
	if remote && p.streams.Prompt == nil {
		return p.remotely(ctx, name, given)
	}
	t, err := p.load(ctx, name)
	switch {
	case err == nil:
	case remote && apierrors.IsForbidden(err):
		// Creating from a template does not require permission to read it. The cluster reports
		// what is missing.
		return p.remotely(ctx, name, given)
	default:
		return nil, err
	}
	if p.streams.Prompt != nil {
		if err := p.prompt(ctx, t, given); err != nil {
			return nil, err
		}
	}
	if remote {
		return p.remotely(ctx, name, given)
	}
	return p.locally(ctx, name, t, given)
}

// prompt prompts for the missing values.
func (p *processing) prompt(ctx context.Context, t *templates.Template, given map[string]string) error {
	missing := t.Missing(given)
	if len(missing) == 0 {
		return nil
	}
	fmt.Fprintf(p.streams.Err, "The template %s needs %s.\n", t.From, cli.Count(len(missing), "value", "values"))
	for i := range missing {
		f := field{streams: p.streams, parameter: &missing[i], template: t}
		value, err := f.prompt(ctx)
		if err != nil {
			return cli.Usage(fmt.Errorf("parameter %s has no value: %w", missing[i].Name, ended(err)))
		}
		given[missing[i].Name] = value
	}
	return nil
}

var errEnded = errors.New("the input has ended")
