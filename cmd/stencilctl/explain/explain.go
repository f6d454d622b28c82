package explain

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// explaining is the command explain.
type explaining struct {
	streams cli.Streams
	cluster cluster.Flags
	file    string
	// parameters are new values for those of a stored VirtualMachine.
	parameters []string
	format     *cli.Format
}

// NewCommand returns the command.
func NewCommand(streams cli.Streams) *cobra.Command {
	e := explaining{streams: streams, format: cli.NewFormat(cli.Table, cli.JSON, cli.YAML)}
	command := &cobra.Command{
		Use:   "explain FILE.yaml | -f FILE | [NAMESPACE/]NAME -p PARAMETER=VALUE",
		Short: "Explain whether a VirtualMachine would be created or changed, and why",
		Long: `Explain whether a VirtualMachine would be created, and why. With NAME, explain what new values of its mutable parameters would
change in a VirtualMachine that exists.

It is sent to the cluster as a dry run, with your permissions: all admission evaluates it, and nothing is stored. In addition,
your permissions, the template and the values of its parameters are checked one by one; the output lists what you may not read.`,
		Example: `  stencilctl explain -f vm.yaml -n shop
  stencilctl explain -f vm.yaml --as ada -o yaml
  stencilctl explain web-1 -n shop -p CORES=4 -p ZONE-`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error { return e.run(command.Context(), names) },
	}
	command.Flags().StringVarP(&e.file, "filename", "f", "", "file with the VirtualMachine")
	command.Flags().StringArrayVarP(&e.parameters, "param", "p", nil, "new value of a parameter of the VirtualMachine NAME: NAME=VALUE, or NAME- for the default; may be repeated")
	e.cluster.Register(command.Flags())
	e.format.Register(command, "output", "o")
	command.ValidArgsFunction = e.cluster.CompleteNames(cluster.VirtualMachines, false)
	e.cluster.CompleteNamespaces(command)
	return command
}

// report is the JSON and YAML output.
type report struct {
	VM      string `json:"machine"`
	Allowed bool   `json:"allowed"`
	// Update is set if the VirtualMachine exists.
	Update bool `json:"update,omitempty"`
	// Template is the referenced template, empty when there is none.
	Template string  `json:"template,omitempty"`
	Checks   []check `json:"checks"`
	// Changes are the fields that would change.
	Changes []change `json:"changes,omitempty"`
	// Warnings are the warnings of admission.
	Warnings []string `json:"warnings,omitempty"`
	Refusal  *refusal `json:"refusal,omitempty"`
}

// Results of a check.
const (
	passed  = "ok"
	failed  = "no"
	unknown = "unknown"
)

// check is one checked condition.
type check struct {
	What    string   `json:"what"`
	Outcome string   `json:"outcome"`
	Details []string `json:"details,omitempty"`
}

func (r *report) add(what, result string, details ...string) {
	r.Checks = append(r.Checks, check{What: what, Outcome: result, Details: details})
}

func (e *explaining) run(ctx context.Context, names []string) error {
	if len(e.parameters) == 0 {
		e.file, names = source.FileOf(e.file, names)
	}
	if (e.file == "") == (len(names) == 0) || len(names) == 1 && len(e.parameters) == 0 || e.file != "" && len(e.parameters) > 0 {
		return cli.Usage(errOneSource)
	}
	var warnings strings.Builder
	client, err := e.cluster.Client(&warnings)
	if err != nil {
		return err
	}
	found := report{Checks: []check{}}
	if e.file != "" {
		err = e.created(ctx, client, &found)
	} else {
		err = e.changed(ctx, client, names[0], &found)
	}
	if err != nil {
		return err
	}
	found.Allowed = found.Refusal == nil
	for line := range strings.Lines(warnings.String()) {
		found.Warnings = append(found.Warnings, strings.TrimPrefix(strings.TrimSpace(line), "Warning: "))
	}
	if err := e.print(&found); err != nil {
		return err
	}
	if !found.Allowed {
		return cli.ErrFindings
	}
	return nil
}

// created describes what would happen to a new VirtualMachine.
func (e *explaining) created(ctx context.Context, client *cluster.Client, found *report) error {
	reader := &source.Reader{In: e.streams.In}
	object, err := reader.One(e.file, "VirtualMachine", (*source.Object).IsVirtualMachine)
	if err != nil {
		return err
	}
	namespace := object.Namespace()
	if namespace == "" || e.cluster.Namespace() != "" {
		namespace = client.Namespace
	}
	found.VM = namespace + "/" + object.ShownName()
	x := examination{client: client, object: object, namespace: namespace, report: found}
	if err := x.examine(ctx); err != nil {
		return err
	}
	_, err = client.Create(ctx, cluster.VirtualMachines, namespace, object.Content, cluster.Written{DryRun: true})
	if denial, denied := cluster.RefusalOf(err); denied {
		found.Refusal = explainRefusal(denial)
	} else if err != nil {
		return cluster.Failed("asking what would happen", err)
	}
	return nil
}

// examination performs the checks that are made in addition to the dry run.
type examination struct {
	client    *cluster.Client
	object    *source.Object
	namespace string
	report    *report
}

func (x *examination) examine(ctx context.Context) error {
	if err := x.permission(ctx, "you may create VirtualMachines in namespace "+x.namespace, access{
		Group: "kubevirt.io", Resource: "virtualmachines", Verb: "create", Namespace: x.namespace,
	}); err != nil {
		return err
	}
	vm, errs := machine.Read(x.object.Content)
	if len(errs) > 0 {
		x.report.add("it is a VirtualMachine", failed, errs.ToAggregate().Error())
		return nil
	}
	written, names := vm.Reference()
	if !names {
		x.report.add("it names no template, and is created as specified", passed)
		return nil
	}
	at, errs := machine.ParseReference(written, x.namespace)
	if len(errs) > 0 {
		var details []string
		for _, each := range errs {
			details = append(details, each.Error())
		}
		x.report.add("it names a template", failed, details...)
		return nil
	}
	x.report.Template = at.String()
	if err := x.permission(ctx, "you may use template "+at.String(), access{
		Group: "template.kubevirt.io", Resource: "virtualmachinetemplates", Verb: "use", Namespace: at.Namespace, Name: at.Name,
	}); err != nil {
		return err
	}
	return x.template(ctx, at)
}
