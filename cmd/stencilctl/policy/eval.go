package policy

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/offline"
)

// evaluation is the command eval.
type evaluation struct {
	streams    cli.Streams
	sources    sources
	data       data
	exceptions exceptions
	requests   requests
	decision   string
	format     *cli.Format
}

func newEval(streams cli.Streams) *cobra.Command {
	e := evaluation{streams: streams, format: cli.NewFormat(cli.Table, cli.JSON, cli.YAML)}
	command := &cobra.Command{
		Use:   "eval -f FILE -p FILE...",
		Short: "Evaluate policies for objects in files, without a cluster",
		Long: `Evaluate policies for objects in files, without a cluster.

Each VirtualMachine and VirtualMachineTemplate, and each request, import and export of one, in the files is evaluated by the policies that
select it with match, as if it were created. A VirtualMachine that names a template is rendered first, if a file contains the
template. The command fails if a request would be denied.

With --exception, violations that PolicyExceptions allow are listed as such, and deny nothing. Those with subjects apply to
the user that --user and --group give; without one, they do not apply.

With --decision, requests are taken from lines of the decision log instead, and the outcome is compared with the one in
the log. Values that the log masks may change the outcome; the output lists them.`,
		Example: `  stencilctl policy eval -f vm.yaml -p policies/
  stencilctl policy eval -f vm.yaml -p policy.yaml --old before.yaml --user ada --group developers
  kubectl get vm web -o yaml | stencilctl policy eval -f - -p policy.yaml --instancetype-file u1.yaml
  kubectl logs -n stencil deploy/stencil-manager | grep '"decision"' | stencilctl policy eval --decision - -p policies/`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if e.decision != "" {
				return e.replayAll(command.Context())
			}
			return e.run(command.Context())
		},
	}
	e.sources.register(command)
	e.data.register(command)
	e.exceptions.register(command)
	e.requests.register(command)
	command.Flags().StringVar(&e.decision, "decision", "", "file with lines of the decision log, to be decided again")
	command.MarkFlagsMutuallyExclusive("decision", "filename")
	command.MarkFlagsMutuallyExclusive("decision", "exception")
	e.format.Register(command, "output", "o")
	return command
}

func (e *evaluation) run(ctx context.Context) error {
	reader, err := e.sources.reader(e.streams)
	if err != nil {
		return err
	}
	fixture, err := e.requests.fixture(reader)
	if err != nil {
		return err
	}
	policies, err := reader.Policies(e.requests.policies)
	if err != nil {
		return err
	}
	given, err := e.data.read(reader)
	if err != nil {
		return err
	}
	excepting, err := e.exceptions.read(reader)
	if err != nil {
		return err
	}
	engine, err := newEngine(ctx, e.streams, policies, given)
	if err != nil {
		return err
	}
	engine.exceptions = allowing(nil, excepting)
	results := []result{}
	err = e.requests.each(ctx, fixture, func(c *offline.Case) error {
		v, err := engine.evaluate(ctx, &c.Case, fixture)
		v.Rendered, v.Notes = c.Rendered, append(c.Notes, v.Notes...)
		results = append(results, v)
		return err
	})
	if err != nil {
		return err
	}
	return e.print(results)
}

func (e *evaluation) print(results []result) error {
	var err error
	if !e.format.Is(cli.Table) {
		err = e.format.Write(e.streams.Out, results)
	} else {
		for i := range results {
			results[i].print(e.streams.Out, e.streams)
		}
	}
	for i := range results {
		if !results[i].Allowed {
			err = errors.Join(err, cli.ErrFindings)
			break
		}
	}
	return err
}
