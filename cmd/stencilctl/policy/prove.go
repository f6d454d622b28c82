package policy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/policies/proof"
	"github.com/vmstencil/stencil/rego"
)

// proving is the command prove.
type proving struct {
	streams  cli.Streams
	sources  sources
	data     data
	cluster  cluster.Flags
	policies []string
	files    []string

	namespace string
	labels    map[string]string
	user      rego.UserInfo
	time      time.Time
	values    map[string]string
	limit     int
	format    *cli.Format
}

func newProve(streams cli.Streams) *cobra.Command {
	p := proving{streams: streams, format: cli.NewFormat(cli.Table, cli.JSON, cli.YAML, cli.JUnit, cli.SARIF)}
	command := &cobra.Command{
		Use:   "prove -p FILE... [-f FILE...]",
		Short: "Decide policies for all values of the parameters of templates that approvals allow",
		Long: `Decide policies for all values of the parameters of templates that approvals allow.

The templates, approvals, instance types, preferences and Namespaces are those of the files (-f), or of the cluster without
any. Every combination of values that the template accepts and the approval allows is rendered and evaluated as it would be
when it is created, without further fields of the user. Without approvals, all values of the template are.

Values are known if the template or the approval lists them, for type bool, and for integers between a minimum and a
maximum. Parameters with other values keep their default, which the output says if it may matter to a policy; so it does
of the time, the user and the namespace. VirtualMachines that a policy cannot tell apart are evaluated once.

The command fails if a policy denies a VirtualMachine that is approved, or fails for one. If it can neither find one nor
try all combinations, the exit code is 5.`,
		Example: `  stencilctl policy prove -p policies/ -f templates/,approvals/,sizes.yaml
  stencilctl policy prove -p policies/ -f templates/ -n team-a --namespace-labels tier=test
  stencilctl policy prove -p policies/ --context production -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return p.run(command.Context()) },
	}
	p.sources.register(command)
	p.data.register(command)
	flags := command.Flags()
	flags.StringSliceVarP(&p.policies, "policy", "p", nil, "files or folders with policies")
	flags.StringSliceVarP(&p.files, "filename", "f", nil, "files or folders with templates, approvals, instance types, preferences and Namespaces (default those of the cluster)")
	flags.StringVarP(&p.namespace, "namespace", "n", "", "namespace of the VirtualMachines (default the first that the approval lists, or that of the template)")
	flags.StringToStringVar(&p.labels, "namespace-labels", nil, "further labels of the namespace: KEY=VALUE,...")
	flags.StringVar(&p.user.Username, "user", "", "user of the request; without --user and --group, the subjects of policies and approvals are ignored")
	flags.StringSliceVar(&p.user.Groups, "group", nil, "groups of the user")
	registerTime(flags, &p.time)
	flags.StringToStringVar(&p.values, "param", nil, "the only values of parameters to try, such as a required one whose values are not listed: NAME=VALUE,...")
	flags.IntVar(&p.limit, "limit", proof.DefaultLimit, "combinations of values that are tried for a template and an approval")
	p.cluster.Unlimited = true
	p.cluster.RegisterForRequests(flags)
	p.format.Register(command, "output", "o")
	return command
}

// pair is a template and an approval that approves it, or none.
type pair struct {
	template  *provenTemplate
	approval  *provenApproval
	namespace rego.Namespace
}

func (p *proving) run(ctx context.Context) error {
	if len(p.policies) == 0 {
		return cli.Usage(errors.New("policies must be given (-p)"))
	}
	if p.limit < 1 {
		return cli.Usage(fmt.Errorf("--limit %d: must be at least 1", p.limit))
	}
	reader, err := p.sources.reader(p.streams)
	if err != nil {
		return err
	}
	policies, err := reader.Policies(p.policies)
	if err != nil {
		return err
	}
	data, err := p.data.read(reader)
	if err != nil {
		return err
	}
	given, err := newEngine(ctx, p.streams, policies, data)
	if err != nil {
		return err
	}
	from := p.fromFiles
	if len(p.files) == 0 {
		from = p.fromCluster
	}
	subjects, err := from(ctx, reader)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		if !slices.ContainsFunc(subjects.templates, func(t *provenTemplate) bool { return t.has(name) }) {
			return cli.Usage(fmt.Errorf("--param %s: no template has this parameter", name))
		}
	}
	found := proved{Proofs: []provenPair{}}
	pairs, err := p.pairs(ctx, subjects, &found)
	if err != nil {
		return err
	}
	err = inOrder(ctx, func(_ context.Context, add func(pair) error) error {
		for _, each := range pairs {
			if err := add(each); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context, each pair) (provenPair, error) {
		return p.prove(ctx, given, subjects, each)
	}, func(one provenPair) error {
		found.Proofs = append(found.Proofs, one)
		return nil
	})
	if err != nil {
		return err
	}
	found.Missing = subjects.missing()
	return p.print(&found)
}

// pairs returns the templates with the approvals that approve them, and records the templates without any, unless there are no approvals at all.
func (p *proving) pairs(ctx context.Context, subjects *provenSubjects, found *proved) ([]pair, error) {
	var all []pair
	namespaces := map[string]rego.Namespace{}
	namespace := func(name string) rego.Namespace {
		known, is := namespaces[name]
		if !is {
			known = subjects.namespace(ctx, name)
			namespaces[name] = known
		}
		return known
	}
	selecting := 0
	for _, each := range subjects.approvals {
		if p.namespace == "" || each.compiled.SelectsNamespace(p.namespace, namespace(p.namespace).Labels) {
			selecting++
		}
	}
	if len(subjects.approvals) > 0 && selecting == 0 {
		return nil, cli.Usage(fmt.Errorf("no TemplateApproval selects namespace %s", p.namespace))
	}
	for _, t := range subjects.templates {
		if len(subjects.approvals) == 0 {
			name := p.namespace
			if name == "" {
				name = t.metadata.Namespace
			}
			all = append(all, pair{template: t, namespace: namespace(name)})
			continue
		}
		approved := false
		for _, a := range subjects.approvals {
			if is, _ := a.compiled.Approves(t.approvable()); !is {
				continue
			}
			approved = true
			name := p.namespace
			switch {
			case name == "" && len(a.namespaces) == 0:
				return nil, cli.Usage(fmt.Errorf("TemplateApproval %s selects namespaces by their labels only: one must be given (-n)", a.compiled.Name()))
			case name == "":
				name = a.namespaces[0]
			case !a.compiled.SelectsNamespace(name, namespace(name).Labels):
				continue
			}
			all = append(all, pair{template: t, approval: a, namespace: namespace(name)})
		}
		if !approved {
			found.NotApproved = append(found.NotApproved, t.name())
		}
	}
	return all, nil
}

// prove decides the policies for a pair.
func (p *proving) prove(ctx context.Context, e *engine, subjects *provenSubjects, each pair) (provenPair, error) {
	q := proof.Question{
		Template: each.template, Policies: e.set, Namespace: each.namespace, User: p.user, Time: p.time, Values: p.values, Sizes: subjects.sizes, Limit: p.limit,
	}
	one := provenPair{Template: each.template.name(), File: each.template.file, Namespace: each.namespace.Name}
	if each.approval != nil {
		q.Approval, one.Approval = each.approval.compiled, each.approval.compiled.Name()
	}
	found, err := proof.Prove(ctx, q, e.evaluator)
	if err != nil {
		return one, err
	}
	one.Proof = *found
	for _, entry := range e.set.Entries() {
		name := entry.Policy.Name()
		if !slices.ContainsFunc(found.Policies, func(r proof.Result) bool { return r.Policy == name }) {
			one.NotAsked = append(one.NotAsked, name)
		}
	}
	return one, nil
}
