package image

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// none is shown in the cell of a table that has no value.
const none = "<none>"

// shortDigest is the number of digits of a digest in tables, as in the names of volumes.
const shortDigest = 12

// listing is the command image list.
type listing struct {
	streams cli.Streams
	cluster cluster.Flags
	format  *cli.Format
}

func newList(streams cli.Streams) *cobra.Command {
	l := listing{streams: streams, format: cli.NewFormat(cli.Table, cli.JSON, cli.YAML, cli.Name)}
	command := &cobra.Command{
		Use:   "list",
		Short: "List golden images",
		Long: `List golden images, with the image that each DataSource stands for: one line for each architecture.

STATE is the reason of the condition UpToDate. TEMPLATES and VMS are the numbers of templates and VMs with a disk from one of the
DataSources of the image, those of its channels and architectures too.`,
		Example: `  stencilctl image list -n golden
  stencilctl image list -A -o yaml`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(command *cobra.Command, _ []string) error { return l.run(command.Context()) },
	}
	l.cluster.RegisterForAll(command.Flags())
	l.format.Register(command, "output", "o")
	l.cluster.CompleteNamespaces(command)
	return command
}

func (l *listing) run(ctx context.Context) error {
	client, err := l.cluster.Client(l.streams.Err)
	if err != nil {
		return err
	}
	objects := []map[string]any{}
	if err := client.List(ctx, goldenImages, "", func(object map[string]any) error {
		delete(machine.MapAt(object, "metadata"), "managedFields")
		objects = append(objects, object)
		return nil
	}); err != nil {
		return err
	}
	switch {
	case l.format.Is(cli.Table):
		return l.table(client.Namespace, objects)
	case l.format.Is(cli.Name):
		for _, object := range objects {
			fmt.Fprintln(l.streams.Out, qualified(machine.StringAt(machine.MapAt(object, "metadata"), "name")))
		}
		return nil
	}
	return l.format.Write(l.streams.Out, map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
}

func (l *listing) table(namespace string, objects []map[string]any) error {
	if len(objects) == 0 {
		where := "namespace " + namespace
		if namespace == "" {
			where = "the cluster"
		}
		fmt.Fprintf(l.streams.Err, "there is no GoldenImage in %s\n", where)
		return nil
	}
	rows := [][]string{{"NAME", "DATASOURCE", "TAG", "DIGEST", "IMPORTED", "STATE", "TEMPLATES", "VMS", "CHANNELS"}}
	if namespace == "" {
		rows[0] = append([]string{"NAMESPACE"}, rows[0]...)
	}
	for _, object := range objects {
		image, err := decode(object)
		if err != nil {
			return err
		}
		for _, row := range rowsOf(image) {
			if namespace == "" {
				row = append([]string{image.Namespace}, row...)
			}
			rows = append(rows, row)
		}
	}
	return cli.Columns(l.streams.Out, rows...)
}

// rowsOf returns a row for each architecture of an image.
func rowsOf(image *v1alpha1.GoldenImage) (rows [][]string) {
	state := none
	if condition := meta.FindStatusCondition(image.Status.Conditions, v1alpha1.ConditionUpToDate); condition != nil {
		state = condition.Reason
	}
	templates, vms := none, none
	if usage := image.Status.Usage; usage != nil {
		templates = strconv.Itoa(int(usage.Templates))
		if usage.VirtualMachines != nil {
			vms = strconv.Itoa(int(*usage.VirtualMachines))
		}
	}
	arches := image.Status.Architectures
	if len(arches) == 0 {
		arches = []v1alpha1.GoldenImageArchitecture{{DataSource: cmp.Or(image.Spec.DataSource, image.Name)}}
	}
	for _, a := range arches {
		tag, digest, imported := none, none, none
		if a.Current != nil {
			tag, digest = cmp.Or(a.Current.Tag, none), short(a.Current.Digest)
			imported = duration.HumanDuration(time.Since(a.Current.ImportedAt.Time))
		}
		var channels []string
		for _, c := range image.Status.Channels {
			if c.Architecture == a.Name {
				channels = append(channels, c.Name+"="+short(c.Digest))
			}
		}
		rows = append(rows, []string{image.Name, a.DataSource, tag, digest, imported, state, templates, vms, cmp.Or(strings.Join(channels, ","), none)})
	}
	return rows
}

// short returns the first digits of a digest.
func short(digest string) string {
	_, digits, _ := strings.Cut(digest, ":")
	return cmp.Or(digits[:min(len(digits), shortDigest)], none)
}
