package available

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// schemas is the command schema.
type schemas struct {
	streams cli.Streams
	cluster cluster.Flags
	kinds   bool
	format  *cli.Format
}

// NewSchema returns the command schema.
func NewSchema(streams cli.Streams) *cobra.Command {
	s := schemas{streams: streams, format: cli.NewFormat(cli.JSON, cli.YAML)}
	command := &cobra.Command{
		Use:   "schema [TEMPLATE | --kinds]",
		Short: "Print a JSON Schema, for forms and for editors of YAML",
		Long: `Print a JSON Schema, draft 2020-12, for forms and for editors of YAML.

For a template, it describes the parameters of a VirtualMachine in the namespace of -n, with the values that the approvals of
the namespace allow: the content of a file for --params-file of process and create. A template of another namespace is
NAMESPACE/NAME.

With --kinds it describes the kinds of Stencil: templates, requests, approvals, policies and golden images. It is that of this
stencilctl and needs no cluster.`,
		Example: `  stencilctl schema golden/fedora -n team-a > fedora.schema.json
  stencilctl schema --kinds > stencil.schema.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error { return s.run(command.Context(), names) },
	}
	command.Flags().BoolVar(&s.kinds, "kinds", false, "describe the kinds of Stencil")
	s.cluster.Register(command.Flags())
	s.format.Register(command, "output", "o")
	s.cluster.CompleteNamespaces(command)
	command.ValidArgsFunction = s.cluster.CompleteNames(cluster.VirtualMachineTemplate, false)
	return command
}

func (s *schemas) run(ctx context.Context, names []string) error {
	if s.kinds == (len(names) == 1) {
		return cli.Usage(errors.New("either a template must be given, as NAME or NAMESPACE/NAME, or --kinds"))
	}
	if s.kinds {
		schema, err := kinds()
		if err != nil {
			return cli.Internal(err)
		}
		return s.format.Write(s.streams.Out, schema)
	}
	client, err := s.cluster.Client(s.streams.Err)
	if err != nil {
		return err
	}
	at, errs := machine.ParseReference(names[0], client.Namespace)
	if len(errs) > 0 {
		return cli.Usage(fmt.Errorf("%q is no name of a template, want NAME or NAMESPACE/NAME", names[0]))
	}
	var described v1beta1.AvailableTemplate
	found, err := client.GetInto(ctx, resource, client.Namespace, at.Namespace+"."+at.Name, &described)
	switch {
	case err != nil:
		return cluster.Failed("reading the schema of template "+at.String(), err)
	case !found:
		return client.Absent(ctx, client.Namespace, fmt.Errorf(
			"template %s does not exist, or you may not use it, or the cluster does not serve %s: see stencilctl templates", at, resource.GroupResource()))
	case described.Schema == nil:
		return cli.Cluster(fmt.Errorf("no VirtualMachine of template %s is allowed in namespace %s:\n  %s", at, client.Namespace, strings.Join(described.Reasons, "\n  ")))
	}
	// Its own bytes have the parameters in the order of the template.
	return s.format.Write(s.streams.Out, json.RawMessage(described.Schema.Raw))
}
