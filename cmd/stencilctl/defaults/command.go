package defaults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	"github.com/vmstencil/stencil/defaulting"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// filling is the command defaults.
type filling struct {
	streams cli.Streams
	format  *cli.Format
	files   []string
	socket  string
	// binary is the stencil-defaulter that is started if no socket is given.
	binary string
}

// NewCommand returns the command.
func NewCommand(streams cli.Streams) *cobra.Command {
	f := filling{streams: streams, format: cli.NewFormat(cli.Table, cli.YAML, cli.JSON)}
	command := &cobra.Command{
		Use:   "defaults FILE.yaml... | -f FILE...",
		Short: "Show the defaults that the guest of a VirtualMachine will see",
		Long: `Show the defaults that the guest of a VirtualMachine will see: the version of its machine type, PCI addresses and the other
values that stencil-defaulter fills in at admission.

The request goes to the defaulter on --socket. Without --socket the command starts stencil-defaulter, with the libvirt and QEMU of
this host; those of the nodes may have other machine types. The files contain one VirtualMachine, and the instance types and
preferences that it names; what depends on a missing one is left open. With -o yaml the VirtualMachine is printed with its
defaults, with -o json the whole response.`,
		Example: `  stencilctl defaults -f vm.yaml
  stencilctl defaults -f vm.yaml,preference.yaml -o yaml | kubectl diff -f -
  stencilctl defaults -f vm.yaml --socket /run/stencil/defaulter.sock`,
		RunE: func(command *cobra.Command, paths []string) error {
			f.files = append(f.files, paths...)
			return f.run(command.Context())
		},
	}
	command.Flags().StringSliceVarP(&f.files, "filename", "f", nil, "files with the VirtualMachine and its instance type and preference")
	command.Flags().StringVar(&f.socket, "socket", "", "unix socket of a stencil-defaulter that runs")
	command.Flags().StringVar(&f.binary, "defaulter", "stencil-defaulter", "the stencil-defaulter to start where there is no --socket")
	command.MarkFlagsMutuallyExclusive("socket", "defaulter")
	f.format.Register(command, "output", "o")
	command.AddCommand(newUnpin(streams), newRepin(streams))
	return command
}

func (f *filling) run(ctx context.Context) error {
	if len(f.files) == 0 {
		return cli.Usage(errors.New("name the file of a VirtualMachine with -f"))
	}
	reader := &source.Reader{In: f.streams.In}
	objects, err := reader.Objects(f.files)
	if err != nil {
		return err
	}
	request, err := requestFor(ctx, objects)
	if err != nil {
		return err
	}
	response, err := f.request(ctx, request)
	var problem *defaulting.Problem
	if errors.As(err, &problem) && problem.Status == http.StatusUnprocessableEntity {
		f.report(problem)
		return cli.ErrFindings
	}
	if err != nil {
		return cli.Internal(err)
	}
	return f.print(response)
}

// requestFor returns the request for the one VirtualMachine among the objects.
func requestFor(ctx context.Context, objects []source.Object) (*defaulting.Request, error) {
	var vm *source.Object
	for i := range objects {
		if objects[i].Kind != rego.KindVirtualMachine {
			continue
		}
		if vm != nil {
			return nil, cli.Usage(fmt.Errorf("the files hold several VirtualMachines: %s and %s", vm, &objects[i]))
		}
		vm = &objects[i]
	}
	if vm == nil {
		return nil, cli.Usage(errors.New("the files hold no VirtualMachine"))
	}
	if spec, _ := vm.Content["spec"].(map[string]any); spec["template"] == nil {
		return nil, cli.Usage(fmt.Errorf("%s has no spec.template: render it first, with stencilctl process", vm))
	}
	request := &defaulting.Request{VM: vm.Raw, DryRun: true}
	c := &policyinput.Case{Request: rego.Request{Kind: vm.Kind, Namespace: vm.Namespace()}, Object: vm.Content}
	c.Resolve(ctx, sizes(objects))
	for _, size := range []struct {
		found  map[string]any
		target any
	}{{c.Instancetype, &request.Instancetype}, {c.Preference, &request.Preference}} {
		if size.found == nil {
			continue
		}
		text, err := json.Marshal(size.found["spec"])
		if err == nil {
			err = json.Unmarshal(text, size.target)
		}
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("reading the %v: %w", size.found["kind"], err))
		}
	}
	return request, nil
}

// sizes resolves instance types and preferences from the files.
type sizes []source.Object

// Resolve implements sizing.Resolver.
func (s sizes) Resolve(_ context.Context, r sizing.Reference) (map[string]any, error) {
	for i := range s {
		if s[i].Kind == r.Kind && s[i].Name() == r.Name {
			return s[i].Content, nil
		}
	}
	return nil, errors.New("no file holds it")
}

// report prints why the VirtualMachine cannot be defined.
func (f *filling) report(problem *defaulting.Problem) {
	fmt.Fprintln(f.streams.Out, f.streams.Paint(cli.Red, problem.Detail)+":")
	for _, cause := range problem.Causes {
		fmt.Fprintf(f.streams.Out, "  %s: %s\n", cause.Path, cause.Detail)
	}
}

func (f *filling) print(response *defaulting.Response) error {
	switch {
	case f.format.Is(cli.JSON):
		return f.format.Write(f.streams.Out, response)
	case f.format.Is(cli.YAML):
		var vm map[string]any
		if err := json.Unmarshal(response.VM, &vm); err != nil {
			return cli.Internal(fmt.Errorf("reading the answer: %w", err))
		}
		return f.format.Write(f.streams.Out, vm)
	}
	out := tabwriter.NewWriter(f.streams.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(out, "FIELD\tVALUE\tFROM")
	for _, set := range response.Set {
		value, err := json.Marshal(set.Value)
		if err != nil {
			return cli.Internal(fmt.Errorf("writing %s: %w", set.Path, err))
		}
		text := string(value)
		if plain, ok := set.Value.(string); ok {
			text = plain
		}
		fmt.Fprintf(out, "%s\t%s\t%s\n", set.Path, text, set.Source)
	}
	if err := out.Flush(); err != nil {
		return cli.Internal(fmt.Errorf("writing the output: %w", err))
	}
	for _, skipped := range response.Skipped {
		fmt.Fprintf(f.streams.Out, "left open: %s: %s\n", skipped.Path, skipped.Reason)
	}
	e := response.Environment
	fmt.Fprintf(f.streams.Out, "with libvirt %s and QEMU %s, as KubeVirt %s starts VMs\n", e.Libvirt, e.QEMU, e.KubeVirt)
	return nil
}
