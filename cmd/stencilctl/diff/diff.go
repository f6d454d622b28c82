// Package diff holds the command diff: it reports where a VirtualMachine differs from its
// template.
package diff

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// differing is the command diff.
type differing struct {
	streams cli.Streams
	cluster cluster.Flags
	file    string
	against string
	format  *cli.Format
	client  *cluster.Client
}

// NewCommand returns the command.
func NewCommand(streams cli.Streams) *cobra.Command {
	d := differing{streams: streams, format: cli.NewFormat(cli.Table, cli.JSON, cli.YAML)}
	command := &cobra.Command{
		Use:   "diff [[NAMESPACE/]VM | FILE.yaml | -f FILE] [-t FILE]",
		Short: "Show the differences between a VirtualMachine and its template",
		Long: `Show the differences between a VirtualMachine and its template.

It differs where no values of the parameters make the template's VirtualMachine equal to it. What it has beyond the template
is no difference. The template is the one that the VirtualMachine was rendered from, as it is now, or the one in a file (-t).
Reading them takes permission to get both; with both in files no cluster is used. The other objects of the template that you
may get are compared, too, if the VirtualMachine is not in a file; and for each disk it shows what it was cloned from, and
what its DataSource stands for now. Values that contain a sensitive parameter, and those of
Secrets, are not shown.`,
		Example: `  stencilctl diff web-1 -n shop
  stencilctl diff web-1 -n shop -t fedora-next.yaml
  stencilctl diff -f web-1.yaml -t fedora.yaml -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error { return d.run(command.Context(), names) },
	}
	command.Flags().StringVarP(&d.file, "filename", "f", "", "file with the VirtualMachine")
	command.Flags().StringVarP(&d.against, "template-file", "t", "", "file with the template to compare with")
	cli.Alias(command, "template", "template-file")
	d.cluster.Register(command.Flags())
	d.format.Register(command, "output", "o")
	command.ValidArgsFunction = d.cluster.CompleteNames(cluster.VirtualMachines, false)
	d.cluster.CompleteNamespaces(command)
	return command
}

// report is the JSON and YAML output.
type report struct {
	VM       string `json:"machine"`
	Template string `json:"template"`
	// Changed means that the template has changed since the VirtualMachine was rendered.
	Changed     bool         `json:"templateChanged"`
	Differences []difference `json:"differences"`
	// NotCompared are other objects of the template, and why they were not compared.
	NotCompared []string `json:"notCompared,omitempty"`
	// Disks are those that are copied from an image, if the VirtualMachine is not in a file.
	Disks []disk `json:"disks,omitempty"`
	// Parameters are the values derived from the VirtualMachine, without sensitive ones.
	Parameters map[string]string `json:"parameters"`
}

type difference struct {
	Path string `json:"path"`
	// Object is the kind and the name of the object, if it is another one than the VirtualMachine.
	Object   string `json:"object,omitempty"`
	Template string `json:"template"`
	// VM is the value in the VirtualMachine, or in the object.
	VM string `json:"machine"`
}

func (d *differing) run(ctx context.Context, names []string) error {
	d.file, names = source.FileOf(d.file, names)
	switch {
	case d.file == "" && len(names) == 0:
		return cli.Usage(errors.New("a VirtualMachine must be given: NAME, or -f FILE"))
	case d.file != "" && len(names) > 0:
		return cli.Usage(errors.New("a VirtualMachine is either NAME or in the file of -f, not both"))
	case d.file == source.Stdin && d.against == source.Stdin:
		return cli.Usage(errors.New("the standard input cannot be both the VirtualMachine and the template"))
	}
	reader := &source.Reader{In: d.streams.In}
	vm, err := d.vm(ctx, reader, names)
	if err != nil {
		return err
	}
	read, errs := machine.Read(vm)
	if len(errs) > 0 {
		return cli.Usage(fmt.Errorf("the VirtualMachine is malformed: %w", errs.ToAggregate()))
	}
	t, err := d.origin(ctx, reader, read)
	if err != nil {
		return err
	}
	match, err := t.Compiled.Match(vm)
	if err != nil {
		return cli.Internal(err)
	}
	found := report{VM: name(read), Template: t.From, Differences: []difference{}, Parameters: map[string]string{}}
	if others := match.MatchedObjects(); len(others) > 0 && d.file == "" {
		existing, reasons, err := d.objects(ctx, read, others)
		if err != nil {
			return err
		}
		if match, err = t.Compiled.Match(vm, template.AndObjects(existing)); err != nil {
			return cli.Internal(err)
		}
		found.NotCompared = reasons
	}
	if d.file == "" {
		if found.Disks, err = disks(ctx, d.client.Get, read); err != nil {
			return err
		}
	}
	if digest := read.Record().Digest; digest != "" {
		found.Changed = digest != t.Compiled.Digest()
	}
	for _, each := range match.Differences() {
		found.Differences = append(found.Differences, difference{Path: each.Path, Object: objectAt(each.Path, match.MatchedObjects()), Template: each.Want, VM: each.Got})
	}
	for parameter, value := range match.Values() {
		if !t.Compiled.Sensitive(parameter) {
			found.Parameters[parameter] = value
		}
	}
	if err := d.print(&found); err != nil {
		return err
	}
	if len(found.Differences) > 0 {
		return cli.ErrFindings
	}
	return nil
}

// vm reads the VirtualMachine.
func (d *differing) vm(ctx context.Context, reader *source.Reader, names []string) (map[string]any, error) {
	if d.file != "" {
		object, err := reader.One(d.file, "VirtualMachine", (*source.Object).IsVirtualMachine)
		if err != nil {
			return nil, err
		}
		return object.Content, nil
	}
	client, err := d.connect()
	if err != nil {
		return nil, err
	}
	at, err := d.cluster.Existing("VirtualMachine", names[0], client.Namespace)
	if err != nil {
		return nil, err
	}
	vm, err := client.Get(ctx, cluster.VirtualMachines, at.Namespace, at.Name)
	if err != nil {
		return nil, cluster.Failed("reading VirtualMachine "+at.String(), err)
	}
	if vm == nil {
		return nil, client.Absent(ctx, at.Namespace, fmt.Errorf("there is no VirtualMachine %s in namespace %s", at.Name, at.Namespace))
	}
	return vm, nil
}

func (d *differing) connect() (*cluster.Client, error) {
	var err error
	if d.client == nil {
		d.client, err = d.cluster.Client(d.streams.Err)
	}
	return d.client, err
}

// origin reads the template to compare with.
func (d *differing) origin(ctx context.Context, reader *source.Reader, vm machine.Object) (*templates.Template, error) {
	if d.against != "" {
		return templates.Read(reader, d.against)
	}
	at, err := rendered(vm)
	if err != nil {
		return nil, err
	}
	client, err := d.connect()
	if err != nil {
		return nil, err
	}
	return templates.Get(ctx, client, at)
}

// rendered returns the template that a VirtualMachine was rendered from, or references.
func rendered(vm machine.Object) (machine.Reference, error) {
	if from := vm.Record(); from.Name != "" {
		return machine.Reference{Namespace: from.Namespace, Name: from.Name}, nil
	}
	written, found := vm.Reference()
	if !found {
		return machine.Reference{}, cli.Usage(fmt.Errorf("VirtualMachine %s names no template: give one (-t)", name(vm)))
	}
	at, errs := machine.ParseReference(written, machine.StringAt(vm.Metadata, "namespace"))
	if len(errs) > 0 {
		return at, cli.Usage(fmt.Errorf("VirtualMachine %s: %w", name(vm), errs.ToAggregate()))
	}
	return at, nil
}

func name(vm machine.Object) string {
	shown := cli.Named(vm.Name(), machine.StringAt(vm.Metadata, "generateName"))
	if namespace := machine.StringAt(vm.Metadata, "namespace"); namespace != "" {
		return namespace + "/" + shown
	}
	return shown
}

func (d *differing) print(found *report) error {
	if !d.format.Is(cli.Table) {
		return d.format.Write(d.streams.Out, found)
	}
	fmt.Fprintf(d.streams.Out, "VirtualMachine %s and template %s: %s\n", d.streams.Paint(cli.Bold, found.VM), found.Template,
		cli.Count(len(found.Differences), "difference", "differences"))
	if found.Changed {
		fmt.Fprintln(d.streams.Out, "  the template has changed since the VM was rendered from it")
	}
	for _, each := range found.NotCompared {
		fmt.Fprintln(d.streams.Out, "  not compared: "+each)
	}
	for _, each := range found.Differences {
		of, path := "VM      ", each.Path
		if each.Object != "" {
			of, path = "object  ", each.Path+" ("+each.Object+")"
		}
		fmt.Fprintf(d.streams.Out, "%s\n  template %s\n  %s %s\n", path, d.streams.Paint(cli.Red, each.Template), of, d.streams.Paint(cli.Green, each.VM))
	}
	for i := range found.Disks {
		fmt.Fprintln(d.streams.Out, strings.Join(found.Disks[i].lines(), "\n"))
	}
	return nil
}
