package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// processing is the command process, with the parts that create shares.
type processing struct {
	streams cli.Streams
	cluster cluster.Flags
	reader  *source.Reader

	file       string
	parameters []string
	valuesFile string
	target     string
	local      bool
	reference  bool
	create     bool
	dryRun     *cli.DryRun
	print      bool
	explain    bool
	format     *cli.Format
	formatted  bool // the user set the output format
	// did is the verb printed about the VirtualMachine by commands that do more than print it.
	did string
}

func (p *processing) register(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVarP(&p.file, "filename", "f", "", "file with the template, which is rendered here")
	flags.StringArrayVarP(&p.parameters, "param", "p", nil, "value of a parameter: NAME=VALUE; may be repeated")
	flags.StringVar(&p.valuesFile, "params-file", "", "file with values of parameters: YAML, JSON, or lines NAME=VALUE")
	flags.BoolVar(&p.local, "local", false, "render a template of the cluster here; needs the permission to get it")
	flags.BoolVar(&p.reference, "reference", true, "let a VirtualMachine that is rendered here refer to its template; one that is created from a file never does")
	flags.StringVar(&p.target, "target-namespace", "", "namespace of the VirtualMachine (default that of -n, or of the context)")
	p.cluster.Register(flags)
	p.format.Register(command, "output", "o")
	command.ValidArgsFunction = p.cluster.CompleteNames(cluster.VirtualMachineTemplate, false)
	p.cluster.CompleteNamespaces(command, "target-namespace")
	// It fails only for a flag that does not exist.
	_ = command.RegisterFlagCompletionFunc("param", p.completeParameters)
}

// NewProcess returns the command process.
func NewProcess(streams cli.Streams) *cobra.Command {
	p := processing{streams: streams, format: cli.NewFormat(cli.YAML, cli.JSON, cli.Table, cli.Name), dryRun: &cli.DryRun{}}
	command := &cobra.Command{
		Use:   "process [NAME | NAMESPACE/NAME | FILE.yaml | -f FILE]",
		Short: "Print the VirtualMachine that a template makes",
		Long: `Print the VirtualMachine that a template makes. It goes to the standard output, the template's message to standard error.
If the template has other objects, they are printed as well: YAML and JSON are a List with the VirtualMachine first.

A template of the cluster is processed there, which takes the permission to create virtualmachinetemplates/process, and none
to read the template. Without that permission, and with --local, it is read, and rendered here. A template in a file is rendered here and needs no cluster.

The VirtualMachine is in the namespace of -n, or of the context: NAMESPACE/NAME is a template of another one. NAME is a template of the
namespace of -n, and --target-namespace then puts the VirtualMachine into another one.

The VirtualMachine refers to its template if you may use it, so that it can be created where approvals require a template. One that is
rendered from a file does if the file, or -n, has the namespace of the template; --reference=false is for a template that the cluster does
not have.

With --explain, the decisions of approvals, policies and every other admission are printed instead, as they would be if you
created the VirtualMachine now. Nothing is stored. The exit code is 1 when anything denies.`,
		Example: `  stencilctl process golden/fedora -n team-a -p NAME=web-1 -p INSTANCETYPE=u1.large
  stencilctl process -f fedora.yaml --params-file values.yaml -o json
  stencilctl process golden/fedora -n team-a -p NAME=web-1 --explain
  stencilctl process -f fedora.yaml --print-params`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			p.formatted = command.Flags().Changed("output")
			return p.run(command.Context(), names)
		},
	}
	p.register(command)
	command.Flags().BoolVar(&p.create, "create", false, "create the VirtualMachine, too")
	command.Flags().BoolVar(&p.explain, "explain", false, "print the cluster's decisions about the VirtualMachine instead")
	command.Flags().BoolVar(&p.print, "print-params", false, "print the parameters of the template instead")
	return command
}

// result is the result of processing a template.
type result struct {
	vm map[string]any
	// objects are the other objects of the template.
	objects []any
	message string
	// namespace is where the VirtualMachine is, or would be, created.
	namespace string
	// decisions are set when they were requested.
	decisions []any
}

func (p *processing) run(ctx context.Context, names []string) error {
	name, err := p.named(names)
	if err != nil {
		return err
	}
	if p.print {
		return p.printParameters(ctx, name)
	}
	given, err := templates.Values(p.reader, p.parameters, p.valuesFile)
	if err != nil {
		return err
	}
	made, err := p.make(ctx, name, given)
	if err != nil {
		return err
	}
	if p.explain {
		return p.showDecisions(made)
	}
	return p.show(made)
}

// named validates the arguments and returns the name of the template, empty for a file.
func (p *processing) named(names []string) (string, error) {
	p.reader = &source.Reader{In: p.streams.In}
	if !p.local {
		p.file, names = source.FileOf(p.file, names)
	}
	switch {
	case p.file == "" && len(names) == 0:
		return "", cli.Usage(errors.New("a template must be given: NAME, or -f FILE"))
	case p.file != "" && len(names) > 0:
		return "", cli.Usage(errors.New("a template is either NAME or in the file of -f, not both"))
	case p.print && (p.create || len(p.parameters) > 0 || p.valuesFile != ""):
		return "", cli.Usage(errors.New("--print-params makes no VirtualMachine, and takes no values"))
	case p.explain && (p.create || p.print):
		return "", cli.Usage(errors.New("--explain creates nothing, and prints decisions: leave out --create and --print-params"))
	case p.explain && (p.file != "" || p.local):
		return "", cli.Usage(errors.New("--explain needs a template that is stored in the cluster: for a manifest, use stencilctl explain"))
	case p.explain && p.formatted && p.format.Is(cli.Name):
		return "", cli.Usage(errors.New("--explain has no names to print: the format is table, json or yaml"))
	case !p.reference && p.file == "" && !p.local:
		return "", cli.Usage(errReference)
	case p.file == source.Stdin && p.valuesFile == source.Stdin:
		return "", cli.Usage(errors.New("the standard input cannot be both the template and its values"))
	case p.file != "":
		return "", nil
	}
	return names[0], nil
}

// load reads a template, and checks that it can be created from if that is requested and it is rendered here.
func (p *processing) load(ctx context.Context, name string) (*templates.Template, error) {
	t, err := p.read(ctx, name)
	if err != nil {
		return nil, err
	}
	if name != "" && !p.local {
		return t, nil // The cluster creates the objects.
	}
	return t, p.creatable(t.From, t.Compiled.Objects())
}

func (p *processing) read(ctx context.Context, name string) (*templates.Template, error) {
	if name == "" {
		return templates.Read(p.reader, p.file)
	}
	client, err := p.cluster.Client(p.streams.Err)
	if err != nil {
		return nil, err
	}
	at, err := reference(name, client)
	if err != nil {
		return nil, err
	}
	return templates.Get(ctx, client, at)
}

// reference parses NAME or NAMESPACE/NAME.
func reference(name string, client *cluster.Client) (machine.Reference, error) {
	at, errs := machine.ParseReference(name, client.Namespace)
	if len(errs) > 0 {
		return at, cli.Usage(fmt.Errorf("%q is neither the name of a template, NAME or NAMESPACE/NAME, nor a manifest that exists; for a file with another name, use -f FILE", name))
	}
	return at, nil
}

// make renders, locally or in the cluster, and creates the VirtualMachine if requested.
func (p *processing) make(ctx context.Context, name string, given map[string]string) (*result, error) {
	if name != "" && !p.local {
		return p.remotely(ctx, name, given)
	}
	t, err := p.load(ctx, name)
	if err != nil {
		return nil, err
	}
	return p.locally(ctx, name, t, given)
}

func (p *processing) locally(ctx context.Context, name string, t *templates.Template, given map[string]string) (*result, error) {
	at, err := p.refersTo(ctx, name, t)
	if err != nil {
		return nil, err
	}
	rendered, err := t.Render(given, at)
	if err != nil {
		return nil, err
	}
	vm := rendered.VM
	for _, name := range t.Unused(given) {
		fmt.Fprintf(p.streams.Err, "Warning: parameter %s is declared and never referred to\n", name)
	}
	violations, warnings := t.Evaluate(vm)
	for _, warning := range warnings {
		fmt.Fprintf(p.streams.Err, "Warning: %s\n", warning)
	}
	if len(violations) > 0 {
		return nil, cli.Usage(fmt.Errorf("the VirtualMachine does not satisfy the rules that come with it:\n  %s", strings.Join(violations, "\n  ")))
	}
	made := &result{vm: vm, objects: rendered.Objects, message: rendered.Message}
	if err := p.put(name, made); err != nil {
		return nil, err
	}
	if made.namespace = machine.StringAt(metadataOf(vm), "namespace"); !p.create || p.dryRun.Client() && made.namespace != "" {
		return made, nil
	}
	client, err := p.cluster.Client(p.streams.Err)
	switch {
	case err != nil && p.dryRun.Client():
		return made, nil // a file needs no cluster, and then has no namespace
	case err != nil:
		return nil, err
	}
	made.namespace = cmp.Or(made.namespace, client.Namespace)
	if p.dryRun.Client() {
		return made, nil
	}
	made.vm, err = client.Create(ctx, cluster.VirtualMachines, made.namespace, vm, cluster.Written{DryRun: p.dryRun.Server()})
	return made, cluster.Failed("creating the VirtualMachine", err)
}

// options is the request body of process and create.
type options struct {
	APIVersion      string            `json:"apiVersion"`
	Kind            string            `json:"kind"`
	Parameters      map[string]string `json:"parameters,omitempty"`
	TargetNamespace string            `json:"targetNamespace,omitempty"`
	Explain         bool              `json:"explain,omitempty"`
}

func (p *processing) remotely(ctx context.Context, name string, given map[string]string) (*result, error) {
	client, err := p.cluster.Client(p.streams.Err)
	if err != nil {
		return nil, err
	}
	at, err := reference(name, client)
	if err != nil {
		return nil, err
	}
	subresource, doing := "process", "processing template "
	if p.create && !p.dryRun.Client() {
		subresource, doing = "create", "creating a VirtualMachine from template "
	}
	body := options{
		APIVersion: templates.Subresources.GroupVersion().String(), Kind: "ProcessOptions",
		Parameters: given, Explain: p.explain,
	}
	namespace := cmp.Or(p.target, client.Namespace)
	if namespace != at.Namespace {
		body.TargetNamespace = namespace
	}
	how := cluster.Written{DryRun: p.create && p.dryRun.Server()}
	answer, err := client.Call(ctx, templates.Subresources, at.Namespace, at.Name, subresource, body, how)
	if lacksSubresource(err) {
		return p.otherwise(ctx, name, &call{client: client, at: at, namespace: namespace, subresource: subresource, doing: doing, given: given, denial: err})
	}
	if err != nil {
		return nil, unserved(cluster.Failed(doing+at.String(), err))
	}
	vm, _ := answer["virtualMachine"].(map[string]any)
	if vm == nil {
		return nil, cli.Cluster(fmt.Errorf("%s%s: the answer holds no VirtualMachine", doing, at))
	}
	objects, _ := answer["objects"].([]any)
	decisions, _ := answer["decisions"].([]any)
	made := &result{vm: vm, objects: objects, message: machine.StringAt(answer, "message"), decisions: decisions, namespace: namespace}
	if subresource == "process" && !p.explain {
		err = p.put(name, made)
	}
	return made, err
}

// put writes the namespace that the command line names into the VirtualMachine and the other objects, so that they are created there. Without one they
// have none, and are created in the namespace of the command that creates them.
func (p *processing) put(name string, made *result) error {
	flag, namespace := "--target-namespace", p.target
	if namespace == "" && strings.Contains(name, "/") {
		flag, namespace = "-n", p.cluster.Namespace()
	}
	if namespace == "" {
		return nil
	}
	if own := machine.StringAt(metadataOf(made.vm), "namespace"); own != "" && own != namespace {
		return cli.Usage(fmt.Errorf("%s %s: the parameters put the VirtualMachine into namespace %s", flag, namespace, own))
	}
	for _, object := range made.all() {
		if metadata := metadataOf(object); metadata != nil {
			metadata["namespace"] = namespace
		}
	}
	return nil
}

// unserved adds a hint to the error of a cluster that does not serve the API of subresources.
// In that case the API server's message contains no object name.
func unserved(err error) error {
	denial, denied := cluster.RefusalOf(err)
	if denied && denial.Code == http.StatusNotFound && !strings.Contains(denial.Message, "\"") {
		return fmt.Errorf("%w; it may not serve %s: --local renders here", err, templates.Subresources.GroupVersion())
	}
	return err
}

// show prints the VirtualMachine to standard output, and the message to standard error.
func (p *processing) show(made *result) error {
	if made.message != "" {
		fmt.Fprintln(p.streams.Err, strings.TrimRight(made.message, "\n"))
	}
	name, namespace := names(made.vm)
	switch {
	case p.format.Is(cli.Name):
		fmt.Fprintln(p.streams.Out, "virtualmachine.kubevirt.io/"+name)
		for _, object := range made.objects {
			fmt.Fprintln(p.streams.Out, resourceName(object))
		}
		return nil
	case p.format.Is(cli.Table) && p.did != "":
		name = cli.Named(machine.StringAt(metadataOf(made.vm), "name"), name)
		fmt.Fprintf(p.streams.Out, "%s %s%s\n", cli.Placed("virtualmachine.kubevirt.io", cmp.Or(namespace, made.namespace), name), p.did, p.dryRun.Suffix())
		return nil
	case p.format.Is(cli.Table):
		spec, _ := made.vm["spec"].(map[string]any)
		instancetype, _ := spec["instancetype"].(map[string]any)
		preference, _ := spec["preference"].(map[string]any)
		err := cli.Columns(p.streams.Out,
			[]string{"NAMESPACE", "NAME", "INSTANCETYPE", "PREFERENCE", "RUNSTRATEGY"},
			[]string{orNone(namespace), orNone(name), orNone(machine.StringAt(instancetype, "name")), orNone(machine.StringAt(preference, "name")), orNone(machine.StringAt(spec, "runStrategy"))})
		if err != nil || len(made.objects) == 0 {
			return err
		}
		return p.tabulate(made.objects)
	case len(made.objects) > 0:
		return p.format.Write(p.streams.Out, map[string]any{"apiVersion": "v1", "kind": "List", "items": made.all()})
	default:
		return p.format.Write(p.streams.Out, made.vm)
	}
}

func names(vm map[string]any) (name, namespace string) {
	metadata := metadataOf(vm)
	if name = machine.StringAt(metadata, "name"); name == "" {
		name = machine.StringAt(metadata, "generateName")
	}
	return name, machine.StringAt(metadata, "namespace")
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}
