package convert

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/convert/openshift"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	"github.com/vmstencil/stencil/template"
)

// templates are OpenShift's Templates.
var templates = schema.GroupVersionResource{Group: openshift.Group, Version: "v1", Resource: "templates"}

// converting is the command convert.
type converting struct {
	streams cli.Streams
	cluster cluster.Flags
	files   []string
	// sources converts the disks of VirtualMachineTemplates instead; inCluster those of stored ones.
	sources, inCluster bool
	dryRun             cli.DryRun
	syntax             *cli.Format
	format             *cli.Format
}

// Styles of placeholders.
const (
	braces      = "braces"
	parentheses = "parentheses"
)

// NewCommand returns the command.
func NewCommand(streams cli.Streams) *cobra.Command {
	c := converting{
		streams: streams,
		syntax:  cli.NewFormat(braces, parentheses),
		format:  cli.NewFormat(cli.YAML, cli.JSON, cli.Name),
	}
	command := &cobra.Command{
		Use:   "convert [NAME... | -f FILE...] [--sources [--stored]]",
		Short: "Convert OpenShift Templates to VirtualMachineTemplates",
		Long: `Convert OpenShift Templates to VirtualMachineTemplates, each of which must hold one VirtualMachine. Its other objects become spec.objects.

They go to the standard output, and the result for each Template, with everything that is lost or changed, to standard error. Templates are in files and folders (-f), or in the cluster, where reading them takes the permission to get
templates of template.openshift.io. The result has no namespace, or that of -n if Templates are in files.

With --sources, VirtualMachineTemplates that copy claims (spec.source.pvc) get a sourceRef to a DataSource of the same name, so that they follow
their image. In files, all objects are printed with the DataSources. Stored templates (--stored, all of the namespace or those of
these names) are updated, and DataSources that do not exist are created. Nothing is written if a DataSource of the name stands
for something else, or if anything would be denied.`,
		Example: `  stencilctl convert -f templates/ > converted.yaml
  stencilctl convert rhel9-server-small -n openshift | kubectl apply -n golden -f -
  stencilctl convert -f old.yaml --syntax parentheses
  stencilctl convert --sources -f templates/ > following.yaml
  stencilctl convert --sources --stored -n golden --dry-run`,
		RunE: func(command *cobra.Command, names []string) error {
			switch {
			case c.sources:
				return c.runSources(command.Context(), names)
			case c.inCluster || command.Flags().Changed("dry-run"):
				return cli.Usage(errors.New("--stored and --dry-run need --sources"))
			}
			return c.run(command.Context(), names)
		},
	}
	flags := command.Flags()
	flags.StringSliceVarP(&c.files, "filename", "f", nil, "files or folders with Templates")
	flags.BoolVar(&c.sources, "sources", false, "give VirtualMachineTemplates DataSources instead of claims")
	flags.BoolVar(&c.inCluster, "stored", false, "with --sources, update the templates of the cluster")
	c.dryRun.RegisterBare(command)
	flags.Var(c.syntax, "syntax", "how placeholders are written: braces, ${NAME} and ${{NAME}}, or parentheses, $(NAME) and $((NAME))")
	_ = command.RegisterFlagCompletionFunc("syntax", cobra.FixedCompletions([]string{braces, parentheses}, cobra.ShellCompDirectiveNoFileComp))
	c.cluster.Register(flags)
	c.format.Register(command, "output", "o")
	command.ValidArgsFunction = c.cluster.CompleteNames(templates, true)
	c.cluster.CompleteNamespaces(command)
	return command
}

// input is a Template to convert.
type input struct {
	// from identifies it in messages.
	from   string
	object map[string]any
}

func (c *converting) run(ctx context.Context, names []string) error {
	var inputs []input
	var err error
	switch {
	case len(names) == 0 && len(c.files) == 0:
		return cli.Usage(errors.New("what to convert must be given: NAME, or -f FILE"))
	case len(names) > 0 && len(c.files) > 0:
		return cli.Usage(errors.New("what to convert is either named or in files, not both"))
	case len(names) > 0:
		inputs, err = c.stored(ctx, names)
	default:
		inputs, err = c.written()
	}
	if err != nil {
		return err
	}
	var converted []*v1beta1.VirtualMachineTemplate
	rejected, lost := 0, 0
	for i, in := range inputs {
		made, losses := c.one(in, fmt.Sprintf("[%d/%d] ", i+1, len(inputs)))
		if made == nil {
			rejected++
			continue
		}
		lost += losses
		if len(names) == 0 {
			made.Namespace = c.cluster.Namespace()
		}
		converted = append(converted, made)
	}
	fmt.Fprintf(c.streams.Err, "%s: %d converted with %s, %d rejected\n",
		cli.Count(len(inputs), "Template", "Templates"), len(converted), cli.Count(lost, "loss", "losses"), rejected)
	if err := c.print(converted); err != nil {
		return err
	}
	if rejected > 0 {
		return cli.ErrFindings
	}
	return nil
}

// stored reads Templates from the cluster.
func (c *converting) stored(ctx context.Context, names []string) ([]input, error) {
	client, err := c.cluster.Client(c.streams.Err)
	if err != nil {
		return nil, err
	}
	var inputs []input
	for _, name := range names {
		at, err := c.cluster.Existing("Template", name, client.Namespace)
		if err != nil {
			return nil, err
		}
		object, err := client.Get(ctx, templates, at.Namespace, at.Name)
		if err != nil {
			return nil, cluster.Failed("reading Template "+at.String(), err)
		}
		if object == nil {
			return nil, client.Absent(ctx, at.Namespace, fmt.Errorf("there is no Template %s in namespace %s", at.Name, at.Namespace))
		}
		// The client does not return the type of the object; it is that of the request.
		object["apiVersion"], object["kind"] = templates.GroupVersion().String(), openshift.Kind
		inputs = append(inputs, input{from: name, object: object})
	}
	return inputs, nil
}

// written reads the Templates in files.
func (c *converting) written() ([]input, error) {
	reader := &source.Reader{In: c.streams.In}
	objects, err := reader.Objects(c.files)
	if err != nil {
		return nil, err
	}
	var inputs []input
	for i := range objects {
		o := &objects[i]
		if o.Kind == openshift.Kind && o.Content["apiVersion"] == nil {
			// Items of a list from the API have no apiVersion and kind.
			o.Content["apiVersion"], o.Content["kind"] = templates.GroupVersion().String(), openshift.Kind
		}
		if openshift.Is(o.Content) {
			inputs = append(inputs, input{from: o.File + ": " + o.String(), object: o.Content})
		}
	}
	if len(inputs) == 0 {
		return nil, cli.Usage(errors.New("there is no Template of template.openshift.io to convert"))
	}
	return inputs, nil
}

// one converts a Template and reports the result. It returns nil when the Template is rejected.
func (c *converting) one(in input, progress string) (made *v1beta1.VirtualMachineTemplate, losses int) {
	made, notes, err := openshift.Convert(in.object, openshift.Options{Parentheses: c.syntax.Is(parentheses)})
	var causes []string
	var rejected *openshift.RejectedError
	switch {
	case errors.As(err, &rejected):
		for _, cause := range rejected.Causes {
			causes = append(causes, cause.String())
		}
	default:
		causes = evaluate(made)
	}
	if len(causes) > 0 {
		fmt.Fprintf(c.streams.Err, "%s%s: %s\n", progress, in.from, c.streams.Paint(cli.Red, "refused"))
		for _, cause := range causes {
			fmt.Fprintf(c.streams.Err, "  %s\n", cause)
		}
		return nil, 0
	}
	fmt.Fprintf(c.streams.Err, "%s%s: converted\n", progress, in.from)
	for _, note := range notes {
		word := "note"
		if note.Loss {
			word = c.streams.Paint(cli.Yellow, "lost")
			losses++
		}
		fmt.Fprintf(c.streams.Err, "  %s %s\n", word, note)
	}
	return made, losses
}

// evaluate returns why the template webhook would deny a template.
func evaluate(made *v1beta1.VirtualMachineTemplate) []string {
	_, err := template.Compile(made)
	var invalid *template.InvalidError
	switch {
	case errors.As(err, &invalid):
		var causes []string
		for _, cause := range invalid.Causes {
			causes = append(causes, "what comes out is not valid: "+cause.Error())
		}
		return causes
	case err != nil:
		return []string{err.Error()}
	default:
		return nil
	}
}

func (c *converting) print(converted []*v1beta1.VirtualMachineTemplate) error {
	switch {
	case c.format.Is(cli.Name):
		for _, each := range converted {
			fmt.Fprintln(c.streams.Out, "virtualmachinetemplate.template.kubevirt.io/"+each.Name)
		}
	case c.format.Is(cli.JSON) && len(converted) != 1:
		return c.format.Write(c.streams.Out, map[string]any{"apiVersion": "v1", "kind": "List", "items": converted})
	default:
		for i, each := range converted {
			if i > 0 {
				fmt.Fprintln(c.streams.Out, "---")
			}
			if err := c.format.Write(c.streams.Out, each); err != nil {
				return err
			}
		}
	}
	return nil
}
