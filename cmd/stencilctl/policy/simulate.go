package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/rego"
)

// simulation is the command simulate.
type simulation struct {
	streams  cli.Streams
	sources  sources
	cluster  cluster.Flags
	policies []string
	selector string
	format   *cli.Format
}

func newSimulate(streams cli.Streams) *cobra.Command {
	s := simulation{streams: streams, format: cli.NewFormat(cli.Table, cli.JSON, cli.YAML)}
	command := &cobra.Command{
		Use:   "simulate -p FILE...",
		Short: "Evaluate policies for the objects of a cluster",
		Long: `Evaluate policies for the objects of a cluster. The cluster is not changed.

Every object of the kinds in the policies is evaluated as if it were created now: in the namespace of the kubeconfig's
context, in another one (-n), or in all (-A). The user of the request is unknown, so subjects in the policies' match are
ignored. Reading needs permission to list the objects, and to get namespaces, templates, instance types, preferences and
ControllerRevisions; the output lists what cannot be read.`,
		Example: `  stencilctl policy simulate -p policy.yaml -A
  stencilctl policy simulate -p policies/ -n shop --context production -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return s.run(command.Context()) },
	}
	s.sources.register(command)
	command.Flags().StringSliceVarP(&s.policies, "policy", "p", nil, "files or folders with policies")
	command.Flags().StringVarP(&s.selector, "selector", "l", "", "labels of the objects, as kubectl takes them")
	s.cluster.RegisterForAll(command.Flags())
	s.format.Register(command, "output", "o")
	return command
}

// simulated is the JSON and YAML output. Objects are those with findings.
type simulated struct {
	Evaluated int      `json:"judged"`
	Denied    int      `json:"denied"`
	Warned    int      `json:"warned"`
	Audited   int      `json:"audited"`
	Objects   []result `json:"objects"`
	// Missing are the objects that could not be read.
	Missing []string `json:"missing,omitempty"`
}

func (s *simulation) run(ctx context.Context) error {
	if len(s.policies) == 0 {
		return cli.Usage(errors.New("policies must be given (-p)"))
	}
	reader, err := s.sources.reader(s.streams)
	if err != nil {
		return err
	}
	policies, err := reader.Policies(s.policies)
	if err != nil {
		return err
	}
	engine, err := newEngine(ctx, s.streams, policies)
	if err != nil {
		return err
	}
	client, err := s.cluster.Client(s.streams.Err)
	if err != nil {
		return err
	}

	found := simulated{Objects: []result{}}
	context := cluster.NewContext(client)
	for _, kind := range engine.kinds() {
		err := client.List(ctx, resourcesOf[kind], s.selector, func(object map[string]any) error {
			v, err := engine.evaluate(ctx, context.Case(ctx, kind, object), context)
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				s.take(&found, v)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	found.Missing = context.Missing
	return s.print(&found)
}

var resourcesOf = map[string]schema.GroupVersionResource{
	rego.KindVirtualMachine:                cluster.VirtualMachines,
	rego.KindVirtualMachineTemplate:        cluster.VirtualMachineTemplate,
	rego.KindVirtualMachineTemplateRequest: cluster.TemplateRequests,
}

// kinds returns the kinds that the policies match.
func (e *engine) kinds() []string {
	var kinds []string
	for _, entry := range e.set.Entries() {
		kinds = append(kinds, entry.Match.Kinds...)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// take counts a result. Only results with findings are retained, or printed at once in the
// table format.
func (s *simulation) take(found *simulated, v result) {
	found.Evaluated++
	switch {
	case !v.Allowed:
		found.Denied++
	case len(v.Warnings) > 0:
		found.Warned++
	case len(v.Audited) > 0:
		found.Audited++
	default:
		return
	}
	if s.format.Is(cli.Table) {
		v.print(s.streams.Out, s.streams)
		return
	}
	found.Objects = append(found.Objects, v)
}

func (s *simulation) print(found *simulated) error {
	for _, missing := range found.Missing {
		fmt.Fprintf(s.streams.Err, "%s %s\n", s.streams.Paint(cli.Yellow, "not read:"), missing)
	}
	var err error
	if s.format.Is(cli.Table) {
		fmt.Fprintf(s.streams.Out, "%s evaluated: %d would be denied, %d warned about, %d only recorded\n",
			cli.Count(found.Evaluated, "object was", "objects were"), found.Denied, found.Warned, found.Audited)
	} else {
		err = s.format.Write(s.streams.Out, found)
	}
	if err == nil && found.Denied > 0 {
		return cli.ErrFindings
	}
	return err
}
