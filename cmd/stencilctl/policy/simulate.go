package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/files"
	"github.com/vmstencil/stencil/cmd/stencilctl/reports"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	policyspec "github.com/vmstencil/stencil/policies/spec"
	"github.com/vmstencil/stencil/rego"
)

// simulation is the command simulate.
type simulation struct {
	streams    cli.Streams
	sources    sources
	data       data
	exceptions exceptions
	cluster    cluster.Flags
	policies   []string
	selector   string
	against    bool
	time       time.Time
	format     *cli.Format
}

func newSimulate(streams cli.Streams) *cobra.Command {
	s := simulation{streams: streams, format: cli.NewFormat(cli.Table, cli.JSON, cli.YAML, cli.JUnit, cli.SARIF)}
	command := &cobra.Command{
		Use:   "simulate -p FILE...",
		Short: "Evaluate policies for the objects of a cluster",
		Long: `Evaluate policies for the objects of a cluster. The cluster is not changed.

Every object of the kinds in the policies is evaluated as if it were created now: in the namespace of the kubeconfig's
context, in another one (-n), or in all (-A). The user of the request is unknown, so subjects in the policies' match are
ignored. Reading needs permission to list the objects and PolicyExceptions, and to get namespaces, templates, instance types,
preferences and ControllerRevisions; the output lists what cannot be read.

The PolicyExceptions of the cluster are applied, except those with subjects, and those in files (--exception), of which one
replaces that of the same name. Violations that they allow are counted as such, and the command does not fail for them.

With --against-current the policies of the same names in the cluster are evaluated, too, and the output is about the
difference: what would newly be denied, which is also what the command fails for, and what would no longer be denied.

Objects are evaluated on all processors while the next ones are read, and the output has the order of the API server. On a
terminal a line on the standard error shows how many were evaluated.`,
		Example: `  stencilctl policy simulate -p policy.yaml -A
  stencilctl policy simulate -p policy.yaml -A --against-current
  stencilctl policy simulate -p policies/ -n shop --context production -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return s.run(command.Context()) },
	}
	s.sources.register(command)
	s.data.register(command)
	s.exceptions.register(command)
	command.Flags().StringSliceVarP(&s.policies, "policy", "p", nil, "files or folders with policies")
	command.Flags().StringVarP(&s.selector, "selector", "l", "", "labels of the objects, as kubectl takes them")
	command.Flags().BoolVar(&s.against, "against-current", false, "compare with the policies of the same names in the cluster")
	registerTime(command.Flags(), &s.time)
	s.cluster.Unlimited = true
	s.cluster.RegisterForAll(command.Flags())
	s.format.Register(command, "output", "o")
	return command
}

// simulated is the JSON and YAML output. Objects are those with findings.
type simulated struct {
	Evaluated int `json:"evaluated"`
	Denied    int `json:"denied"`
	Warned    int `json:"warned"`
	Audited   int `json:"audited"`
	// Excepted is the number of objects of which exceptions allow all violations.
	Excepted int `json:"excepted"`
	// Unknown is the number of objects with no violations but those that depend on the time or the user of a request.
	Unknown int `json:"unknown"`
	// NewlyDenied and NoLongerDenied are the numbers of objects that would be denied now, or were, and not by the policies in the cluster.
	NewlyDenied    *int     `json:"newlyDenied,omitempty"`
	NoLongerDenied *int     `json:"noLongerDenied,omitempty"`
	Objects        []result `json:"objects"`
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
	data, err := s.data.read(reader)
	if err != nil {
		return err
	}
	excepting, err := s.exceptions.read(reader)
	if err != nil {
		return err
	}
	given, err := newEngine(ctx, s.streams, policies, data)
	if err != nil {
		return err
	}
	client, err := s.cluster.Client(s.streams.Err)
	if err != nil {
		return err
	}

	found := simulated{Objects: []result{}}
	var current *engine
	if s.against {
		if current, err = s.current(ctx, client, policies, data); err != nil {
			return err
		}
		found.NewlyDenied, found.NoLongerDenied = new(int), new(int)
	}
	from := cluster.NewContext(client)
	stored, err := storedExceptions(ctx, client)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		from.Miss("PolicyExceptions", err)
	}
	given.exceptions = allowing(stored, excepting)
	if current != nil {
		current.exceptions = given.exceptions
	}
	progress := files.NewMeter(s.streams, "objects evaluated:", 0)
	defer progress.End()
	type subject struct {
		kind   string
		object map[string]any
	}
	err = inOrder(ctx, func(ctx context.Context, add func(subject) error) error {
		for _, kind := range given.kinds() {
			if err := client.List(ctx, resourcesOf[kind], s.selector, func(object map[string]any) error { return add(subject{kind, object}) }); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context, one subject) (result, error) {
		v, err := s.evaluate(ctx, given, from, one.kind, one.object)
		if err == nil && current != nil {
			var before result
			before, err = s.evaluate(ctx, current, from, one.kind, one.object)
			v.compare(&before)
		}
		return v, err
	}, func(v result) error {
		s.take(&found, v, progress)
		return nil
	})
	if err != nil {
		return err
	}
	progress.End()
	found.Missing = from.Missing()
	return s.print(&found)
}

// sarif has the findings of all objects, by policy.
func (found *simulated) sarif() *reports.Sarif {
	var all []reports.Finding
	for i := range found.Objects {
		v := &found.Objects[i]
		for _, list := range []struct {
			level string
			of    []violation
		}{{reports.Error, v.failures()}, {reports.Warning, v.Warnings}, {reports.Note, v.Audited}} {
			for _, each := range list.of {
				all = append(all, reports.Finding{Rule: each.Policy, Level: list.level, Message: each.Text(), About: v.object()})
			}
		}
	}
	return reports.SARIF(nil, all)
}

// junit has a case for each object with findings. It failed if the object would be denied.
func (found *simulated) junit() reports.Suite {
	s := reports.Suite{Name: "simulate"}
	for i := range found.Objects {
		v := &found.Objects[i]
		var denials []string
		for _, each := range v.failures() {
			denials = append(denials, each.text())
		}
		s.Cases = append(s.Cases, reports.Case{Name: v.object(), Class: v.Kind, Failure: strings.Join(denials, "\n")})
	}
	return s
}

func (s *simulation) evaluate(ctx context.Context, e *engine, from *cluster.Context, kind string, object map[string]any) (result, error) {
	c := from.Case(ctx, kind, object)
	c.Request.Time = s.time
	v, err := e.evaluate(ctx, c, from)
	v.setAside(func(policy string) bool {
		compiled := e.compiled[policy]
		return compiled != nil && (compiled.ReadsUser() || s.time.IsZero() && compiled.ReadsTime())
	})
	if err == nil {
		err = ctx.Err()
	}
	return v, err
}

// policyResource is the resource of policies in a cluster.
var policyResource = v1alpha1.GroupVersion.WithResource("virtualmachinepolicies")

// current compiles the policies in the cluster that have the names of others. One that does not compile there is left out.
func (s *simulation) current(ctx context.Context, client *cluster.Client, policies []*source.Policy, data givenData) (*engine, error) {
	var stored []*source.Policy
	for _, policy := range policies {
		var read v1alpha1.VirtualMachinePolicy
		found, err := client.GetInto(ctx, policyResource, "", policy.Name(), &read)
		if err != nil {
			return nil, cluster.Failed("reading VirtualMachinePolicy "+policy.Name(), err)
		}
		if !found {
			continue
		}
		spec, problems := policyspec.Read(&read)
		stored = append(stored, &source.Policy{File: "cluster", Spec: spec, Problems: problems})
	}
	problems, err := check(ctx, stored)
	if err != nil {
		return nil, err
	}
	stored = slices.DeleteFunc(stored, func(policy *source.Policy) bool {
		broken := slices.ContainsFunc(problems, func(p problem) bool { return p.Policy == policy.Name() })
		if broken {
			fmt.Fprintf(s.streams.Err, "%s policy %s in the cluster does not compile, and is compared as if it did not exist\n", s.streams.Paint(cli.Yellow, "note:"), policy.Name())
		}
		return broken
	})
	return newEngine(ctx, s.streams, stored, data)
}

// compare sets what would newly be denied and no longer be denied, compared with the result of the policies in force.
func (v *result) compare(before *result) {
	v.compared = true
	v.NewlyDenied, v.NoLongerDenied = without(v.Denials, before.Denials), without(before.Denials, v.Denials)
}

// without returns the violations that others do not have, by policy, message and field.
func without(all, others []violation) []violation {
	return slices.DeleteFunc(slices.Clone(all), func(one violation) bool {
		return slices.ContainsFunc(others, func(other violation) bool { return one.Policy == other.Policy && one.Finding == other.Finding })
	})
}

var resourcesOf = map[string]schema.GroupVersionResource{
	rego.KindVirtualMachine:                cluster.VirtualMachines,
	rego.KindVirtualMachineTemplate:        cluster.VirtualMachineTemplate,
	rego.KindVirtualMachineTemplateRequest: cluster.TemplateRequests,
	rego.KindVirtualMachineTemplateImport:  cluster.TemplateImports,
	rego.KindVirtualMachineTemplateExport:  cluster.TemplateExports,
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
func (s *simulation) take(found *simulated, v result, progress *files.Meter) {
	found.Evaluated++
	progress.Add(1)
	switch {
	case !v.Allowed:
		found.Denied++
	case len(v.Warnings) > 0:
		found.Warned++
	case len(v.Audited) > 0:
		found.Audited++
	case len(v.Unknown) > 0:
		found.Unknown++
	case len(v.Excepted) > 0:
		found.Excepted++
	default:
		if !v.compared {
			return
		}
	}
	if v.compared {
		if len(v.NewlyDenied)+len(v.NoLongerDenied) == 0 {
			return
		}
		if len(v.NewlyDenied) > 0 {
			*found.NewlyDenied++
		} else {
			*found.NoLongerDenied++
		}
	}
	if s.format.Is(cli.Table) {
		progress.End()
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
	switch {
	case s.format.Is(cli.SARIF):
		err = s.format.Write(s.streams.Out, found.sarif())
	case s.format.Is(cli.JUnit):
		err = cli.Internal(reports.WriteJUnit(s.streams.Out, []reports.Suite{found.junit()}))
	case s.format.Is(cli.Table) && found.NewlyDenied != nil:
		fmt.Fprintf(s.streams.Out, "%s evaluated: %d would newly be denied, %d no longer, %d would be denied in all\n",
			cli.Count(found.Evaluated, "object was", "objects were"), *found.NewlyDenied, *found.NoLongerDenied, found.Denied)
	case s.format.Is(cli.Table):
		fmt.Fprintf(s.streams.Out, "%s evaluated: %d would be denied, %d warned about, %d only recorded", cli.Count(found.Evaluated, "object was", "objects were"), found.Denied, found.Warned, found.Audited)
		if found.Excepted > 0 {
			fmt.Fprintf(s.streams.Out, ", %d excepted", found.Excepted)
		}
		if found.Unknown > 0 {
			fmt.Fprintf(s.streams.Out, ", %d unknown, because policies read the time or the user of a request", found.Unknown)
		}
		fmt.Fprintln(s.streams.Out)
	default:
		err = s.format.Write(s.streams.Out, found)
	}
	fails := found.Denied > 0
	if found.NewlyDenied != nil {
		fails = *found.NewlyDenied > 0
	}
	if err == nil && fails {
		return cli.ErrFindings
	}
	return err
}
