package defaults

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kubevirtv1 "kubevirt.io/api/core/v1"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/internal/pinned"
	"github.com/vmstencil/stencil/template/virtualmachine"
)

var virtualMachines = kubevirtv1.SchemeGroupVersion.WithResource("virtualmachines")

// pinning is one of the commands unpin and repin.
type pinning struct {
	streams  cli.Streams
	cluster  cluster.Flags
	selector string
	all      bool
	confirm  bool
	// again means that the defaults are filled in again (repin).
	again bool

	client *cluster.Client
	// done counts the VirtualMachines that were, or would be, changed, left the selected ones
	// that could not be changed.
	done, left int
}

func newUnpin(streams cli.Streams) *cobra.Command {
	p := &pinning{streams: streams}
	return p.command("unpin [NAME...]", "Remove the values that defaulting has written from stopped VirtualMachines", `Remove the values that defaulting has written from stopped VirtualMachines: the version of the machine type and PCI addresses.

User-specified values stay; the record of the defaults webhook distinguishes them. The VirtualMachines are then excluded from
defaulting by the annotation `+contract.AnnotationDefaultsSkip+`, until repin or a user removes it.`,
		`  stencilctl defaults unpin web-1 db-1 --namespace shop
  stencilctl defaults unpin -l os=windows --all-namespaces --confirm`)
}

func newRepin(streams cli.Streams) *cobra.Command {
	p := &pinning{streams: streams, again: true}
	return p.command("repin [NAME...]", "Fill in the defaults of stopped VirtualMachines again", `Fill in the defaults of stopped VirtualMachines again, with the current libvirt and QEMU.

The values that defaulting has written are removed, as by unpin, and then the defaults webhook fills in the missing values, in a
second update of the same VirtualMachine. Guests may find other hardware when they start. VirtualMachines that were stored without
defaults, or that unpin has excluded, get defaults.`,
		`  stencilctl defaults repin --all --namespace shop
  stencilctl defaults repin -l os=fedora --confirm`)
}

func (p *pinning) command(use, short, long, example string) *cobra.Command {
	command := &cobra.Command{
		Use:   use,
		Short: short,
		Long: long + `

Nothing is changed without --confirm: the cluster evaluates the change in a dry run, and what would be done is printed. A VM
that runs, or is to run, is not touched, and one that another client changes meanwhile is read again. An approval evaluates
this as any other update: it takes overrides for these fields, or a user who is exempt. It takes the permission to
get or list, and to update virtualmachines. The exit code is 1 when a VM was named or selected that could not be changed.`,
		Example: example,
		RunE:    func(command *cobra.Command, names []string) error { return p.run(command.Context(), names) },
	}
	command.Flags().StringVarP(&p.selector, "selector", "l", "", "label selector of the VirtualMachines")
	command.Flags().BoolVar(&p.all, "all", false, "all VirtualMachines of the namespace, or of all namespaces")
	command.Flags().BoolVar(&p.confirm, "confirm", false, "do it")
	p.cluster.RegisterForAll(command.Flags())
	return command
}

func (p *pinning) run(ctx context.Context, names []string) (err error) {
	chosen := 0
	for _, given := range []bool{len(names) > 0, p.selector != "", p.all} {
		if given {
			chosen++
		}
	}
	if chosen != 1 {
		return cli.Usage(errors.New("name VirtualMachines, or select them with -l, or all with --all"))
	}
	if p.client, err = p.cluster.Client(p.streams.Err); err != nil {
		return err
	}
	if len(names) > 0 && p.client.Namespace == "" {
		return cli.Usage(errors.New("names are of one namespace: leave --all-namespaces out"))
	}
	selected, err := p.selected(ctx, names)
	if err != nil {
		return err
	}
	for _, vm := range selected {
		if err := p.one(ctx, vm, 1); err != nil {
			return err
		}
	}
	return p.conclude(len(selected))
}

// selected returns the selected VirtualMachines. All are read before the first is changed, so
// that an expired list does not return one twice.
func (p *pinning) selected(ctx context.Context, names []string) ([]map[string]any, error) {
	var list []map[string]any
	if len(names) == 0 {
		err := p.client.List(ctx, virtualMachines, p.selector, func(vm map[string]any) error {
			list = append(list, vm)
			return nil
		})
		return list, err
	}
	for _, name := range names {
		at, err := p.cluster.Existing("VirtualMachine", name, p.client.Namespace)
		if err != nil {
			return nil, err
		}
		vm, err := p.client.Get(ctx, virtualMachines, at.Namespace, at.Name)
		if err != nil {
			return nil, cluster.Failed("reading VirtualMachine "+at.String(), err)
		}
		if vm == nil {
			p.skip(at.String(), errors.New("there is none"))
			continue
		}
		list = append(list, vm)
	}
	return list, nil
}

// one changes a VirtualMachine, or prints what would be changed. An error ends the command.
func (p *pinning) one(ctx context.Context, vm map[string]any, attempt int) error {
	metadata := virtualmachine.MapAt(vm, "metadata")
	name := fmt.Sprintf("%v/%v", metadata["namespace"], metadata["name"])
	if metadata["annotations"] == nil {
		metadata["annotations"] = map[string]any{}
	}
	changes, err := p.prepare(vm)
	switch {
	case errors.Is(err, errNothing):
		// There is nothing to change.
		fmt.Fprintf(p.streams.Out, "%s: %v\n", name, err)
		return nil
	case err != nil:
		p.skip(name, err)
		return nil
	}
	if changes != nil {
		updated, err := p.update(ctx, vm)
		if apierrors.IsConflict(err) && attempt < cluster.MaxConflicts {
			// The decision is made again: the VM may have been started.
			fresh, err := p.reread(ctx, vm)
			if err != nil {
				return p.deniedError(name, err)
			}
			return p.one(ctx, fresh, attempt+1)
		}
		if err != nil {
			return p.deniedError(name, err)
		}
		vm = updated
	}
	p.done++
	fmt.Fprintf(p.streams.Out, "%s\n", name)
	for _, c := range changes {
		fmt.Fprintf(p.streams.Out, "  %s: %s -> %s\n", c.Field, c.From, c.To)
	}
	if !p.again {
		return nil
	}
	if !p.confirm {
		fmt.Fprintln(p.streams.Out, "  and what is open is filled in anew")
		return nil
	}
	return p.fill(ctx, name, vm)
}

// prepare changes a VirtualMachine to what is stored first. If it returns nil changes and no
// error, nothing has to be stored before the defaults are filled in.
func (p *pinning) prepare(vm map[string]any) ([]pinned.Change, error) {
	if !p.again {
		return unpin(vm)
	}
	if skipped(vm) {
		return nil, reopen(vm)
	}
	changes, err := unpin(vm)
	if !errors.Is(err, errNothing) {
		return changes, err
	}
	_, text, err := pinned.Read(virtualmachine.MapAt(vm, "metadata", "annotations"))
	if err != nil {
		return nil, err
	}
	return []pinned.Change{}, setAside(vm, text)
}

// fill lets the defaults webhook fill in a VirtualMachine that was set aside.
func (p *pinning) fill(ctx context.Context, name string, vm map[string]any) error {
	delete(virtualmachine.MapAt(vm, "metadata", "annotations"), contract.AnnotationDefaultsSkip)
	filled, err := p.update(ctx, vm)
	for attempt := 1; apierrors.IsConflict(err) && attempt < cluster.MaxConflicts; attempt++ {
		var fresh map[string]any
		if fresh, err = p.reread(ctx, vm); err != nil {
			break
		}
		if reason := reopen(fresh); reason != nil {
			p.done--
			p.skip(name, reason)
			return nil
		}
		filled, err = p.update(ctx, fresh)
	}
	if err != nil {
		p.done--
		return p.deniedError(name+" has nothing of defaulting now, and repin has to be repeated", err)
	}
	annotations := virtualmachine.MapAt(filled, "metadata", "annotations")
	if failed, _ := annotations[contract.AnnotationDefaultsFailed].(string); failed != "" {
		p.done--
		p.skip(name, fmt.Errorf("what was taken out is not filled in: %s", failed))
		return nil
	}
	written, _, err := pinned.Read(annotations)
	if err != nil {
		p.skip(name, err)
		return nil
	}
	fmt.Fprintf(p.streams.Out, "  filled in: machine type %s, %d PCI addresses\n", written.Machine, len(written.Addresses))
	return nil
}

// update replaces the version that was read, in a dry run without --confirm.
func (p *pinning) update(ctx context.Context, vm map[string]any) (map[string]any, error) {
	metadata := virtualmachine.MapAt(vm, "metadata")
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	return p.client.Update(ctx, virtualMachines, namespace, name, vm, cluster.Written{DryRun: !p.confirm})
}

// reread returns the VirtualMachine as it is stored now. The error is the API server's.
func (p *pinning) reread(ctx context.Context, vm map[string]any) (map[string]any, error) {
	metadata := virtualmachine.MapAt(vm, "metadata")
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	fresh, err := p.client.Get(ctx, virtualMachines, namespace, name)
	if err == nil && fresh == nil {
		err = apierrors.NewNotFound(virtualMachines.GroupResource(), name)
	}
	return fresh, err
}

// deniedError reports that the API server rejected a change; any other error ends the command.
func (p *pinning) deniedError(name string, err error) error {
	if apierrors.IsConflict(err) {
		p.skip(name, errors.New("another user or controller has changed it in the meantime"))
		return nil
	}
	denial, isDenial := cluster.RefusalOf(err)
	if !isDenial {
		return cluster.Failed("changing "+name, err)
	}
	p.skip(name, fmt.Errorf("denied: %s", denial.Message))
	for _, cause := range denial.Causes {
		fmt.Fprintf(p.streams.Out, "  %s\n", cause)
	}
	return nil
}

// skip reports why a VirtualMachine is not changed.
func (p *pinning) skip(name string, reason error) {
	p.left++
	fmt.Fprintf(p.streams.Out, "%s: %v\n", name, reason)
}

func (p *pinning) conclude(selected int) error {
	did := "changed"
	if !p.confirm {
		did = "would be changed; nothing is without --confirm"
	}
	fmt.Fprintf(p.streams.Out, "%d of %d %s\n", p.done, selected, did)
	if p.left > 0 {
		return cli.ErrFindings
	}
	return nil
}
