package available

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
)

// resource is where the API server lists the templates that a user may use.
var resource = v1beta1.GroupVersion.WithResource("availabletemplates")

// listing is the command templates.
type listing struct {
	streams  cli.Streams
	cluster  cluster.Flags
	selector string
	format   *cli.Format
}

// NewTemplates returns the command templates.
func NewTemplates(streams cli.Streams) *cobra.Command {
	l := listing{streams: streams, format: cli.NewFormat(cli.Table, cli.JSON, cli.YAML, cli.Name)}
	command := &cobra.Command{
		Use:   "templates",
		Short: "List the templates that you may use for a VirtualMachine in a namespace",
		Long: `List the templates that you may use for a VirtualMachine in a namespace: whether each is ready, which approvals allow it, and
the parameters that they let you set. A star marks those that have to be given. You need no permission to read the templates.

The names are those for annotation template.kubevirt.io/template-ref, process and create.`,
		Example: `  stencilctl templates -n team-a
  stencilctl templates -n team-a -l os.template.kubevirt.io/fedora -o yaml`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return l.run(command.Context()) },
	}
	command.Flags().StringVarP(&l.selector, "selector", "l", "", "only templates with these labels")
	l.cluster.Register(command.Flags())
	l.format.Register(command, "output", "o")
	l.cluster.CompleteNamespaces(command)
	return command
}

func (l *listing) run(ctx context.Context) error {
	client, err := l.cluster.Client(l.streams.Err)
	if err != nil {
		return err
	}
	var objects []any
	var items []v1beta1.AvailableTemplate
	if err := client.List(ctx, resource, l.selector, func(object map[string]any) error {
		var item v1beta1.AvailableTemplate
		objects = append(objects, object)
		err := templates.Decode(object, &item)
		items = append(items, item)
		return err
	}); err != nil {
		return err
	}
	switch {
	case l.format.Is(cli.Name):
		for i := range items {
			fmt.Fprintln(l.streams.Out, reference(&items[i]))
		}
		return nil
	case !l.format.Is(cli.Table):
		list := map[string]any{"apiVersion": v1beta1.GroupVersion.String(), "kind": "AvailableTemplateList", "items": append([]any{}, objects...)}
		return l.format.Write(l.streams.Out, list)
	case len(items) == 0:
		fmt.Fprintf(l.streams.Err, "You may use no template for VirtualMachines in namespace %s. Verb use on virtualmachinetemplates.template.kubevirt.io permits it.\n", client.Namespace)
		return nil
	}
	return l.table(items)
}

// table prints the templates, and why some cannot be used now.
func (l *listing) table(items []v1beta1.AvailableTemplate) error {
	rows := [][]string{{"TEMPLATE", "TITLE", "READY", "ALLOWED BY", "PARAMETERS"}}
	var reasons []string
	for i := range items {
		item := &items[i]
		rows = append(rows, []string{reference(item), cmp.Or(item.DisplayName, "-"), string(item.Ready.Status), allowedBy(item), cmp.Or(strings.Join(item.SettableParameters(), ","), "-")})
		for _, reason := range item.Reasons {
			reasons = append(reasons, reference(item)+": "+reason)
		}
		if item.Ready.Status != metav1.ConditionTrue {
			reasons = append(reasons, reference(item)+": not ready: "+item.Ready.Message)
		}
	}
	err := cli.Columns(l.streams.Out, rows...)
	if len(reasons) > 0 {
		fmt.Fprintln(l.streams.Out, "\n"+strings.Join(reasons, "\n"))
	}
	return err
}

func reference(item *v1beta1.AvailableTemplate) string {
	return item.TemplateRef.Namespace + "/" + item.TemplateRef.Name
}

// allowedBy returns the approvals of a template, those with the same rules joined by commas.
func allowedBy(item *v1beta1.AvailableTemplate) string {
	switch {
	case !item.Allowed:
		return "nothing"
	case item.Enforcement == "":
		return "(not governed)"
	}
	var each []string
	for _, variant := range item.Variants {
		if len(variant.Approvals) > 0 {
			each = append(each, strings.Join(variant.Approvals, ","))
		}
	}
	if each == nil {
		return "(no approval needed)"
	}
	return strings.Join(each, " or ")
}
