package install

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/installation"
	"github.com/vmstencil/stencil/internal/preflight"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// defaultLimit is how long one step may wait.
const defaultLimit = 10 * time.Minute

// handing is the command install takeover, and install release.
type handing struct {
	streams cli.Streams
	cluster cluster.Flags
	release string
	file    string
	dryRun  cli.DryRun
	limit   time.Duration
	steps   func(h *handover) []step
	last    func(h *handover) string
	// before reports what must not be the case, and warns.
	before func(ctx context.Context, h *handover) error
}

func newTakeover(streams cli.Streams) *cobra.Command {
	c := handing{
		streams: streams,
		before:  func(ctx context.Context, h *handover) error { return warnUnusable(ctx, streams, h.client) },
		steps: func(h *handover) []step {
			marks := h.owned()
			keep := func(ctx context.Context) error {
				return h.give(ctx, preflight.Definitions, installation.Definitions, installation.ByHelm, true, marks)
			}
			return []step{
				h.backup.save(h.client),
				h.guarded(),
				h.owners("take the definitions from virt-operator", preflight.Definitions, installation.Definitions, installation.ByHelm, true, marks),
				h.noticed(keep),
				h.owners("take the APIServices from virt-operator", preflight.APIServices, installation.APIServices, installation.ByHelm, false, marks),
				h.component("switch KubeVirt's template component off", false),
				h.deployed(keep),
				h.owners("hold the definitions", preflight.Definitions, installation.Definitions, installation.ByHelm, true, marks),
				h.backup.compared(h.client),
			}
		},
		last: func(h *handover) string {
			return fmt.Sprintf(`The definitions belong to the Helm release %s/%s now, with all templates. Install Stencil as this release:
  helm upgrade --install %s CHART --namespace %s --create-namespace --force-conflicts
Helm 4 needs --force-conflicts once, because virt-operator wrote the definitions; Helm 3 has no such flag and needs none.
Until then templates are kept, and nothing processes them.`, h.namespace, h.name, h.name, h.namespace)
		},
	}
	return c.command("takeover", "Take the definitions of templates over from KubeVirt's own template component", `Take the definitions of templates over from KubeVirt's own template component, with all templates and their requests.

virt-operator deletes its definitions, and all templates with them, when its template component is switched off. So this command first saves everything to a file and denies
the deletion of the definitions; then it takes virt-operator's label from them, waits until virt-operator has noticed, switches the component off, waits until KubeVirt has settled, and
compares all objects with the file by UID. After that Helm installs Stencil.

An interrupted command goes on when it is run again; stencilctl install release goes back. It takes the permissions of a cluster admin.`)
}

func newRelease(streams cli.Streams) *cobra.Command {
	c := handing{
		streams: streams,
		before: func(ctx context.Context, h *handover) error {
			h.client.Namespace = h.namespace
			defer func() { h.client.Namespace = "" }()
			var running []string
			err := h.client.List(ctx, deployments, "app.kubernetes.io/instance="+h.name, func(object map[string]any) error {
				running = append(running, machine.StringAt(machine.MapAt(object, "metadata"), "name"))
				return nil
			})
			if err != nil || len(running) == 0 {
				return err
			}
			return cli.Cluster(fmt.Errorf("the release is installed (Deployment %s): run helm uninstall %s --namespace %s first, which keeps the definitions and templates",
				strings.Join(running, ", "), h.name, h.namespace))
		},
		steps: func(h *handover) []step {
			marks := h.operators()
			return []step{
				h.backup.save(h.client),
				// virt-operator deletes definitions with its label while the component is off, and may not have seen yet that it is on.
				h.guarded(),
				h.component("switch KubeVirt's template component on", true),
				h.started(),
				h.owners("give the definitions to virt-operator", preflight.Definitions, installation.Definitions, installation.ByOperator, true, marks),
				h.owners("give the APIServices to virt-operator", preflight.APIServices, installation.APIServices, installation.ByOperator, false, marks),
				h.deployed(nil),
				h.unguarded(),
				h.backup.compared(h.client),
			}
		},
		last: func(*handover) string {
			return "The definitions belong to KubeVirt's own template component now, with all templates. Fields that only Stencil has are dropped when a template is written the next time."
		},
	}
	return c.command("release", "Give the definitions of templates to KubeVirt's own template component", `Give the definitions of templates to KubeVirt's own template component, with all templates and their requests: the way back from install takeover.

Uninstall Stencil before, which keeps the definitions. The command saves everything to a file, denies the deletion of the definitions meanwhile, switches the component on, waits until virt-operator has seen that, gives it its label, waits until KubeVirt has settled,
and compares all objects with the file by UID. An interrupted command goes on when it is run again. It takes the permissions of a cluster admin.`)
}

func (c *handing) command(name, short, long string) *cobra.Command {
	command := &cobra.Command{
		Use: name, Short: short, Long: long,
		Example: fmt.Sprintf(`  stencilctl install %s --dry-run
  stencilctl install %s --file templates.yaml`, name, name),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(command *cobra.Command, _ []string) error { return c.run(command.Context()) },
	}
	command.Flags().StringVar(&c.release, "release", "stencil-system/stencil", "NAMESPACE/NAME of Stencil's Helm release")
	command.Flags().StringVar(&c.file, "file", "stencil-"+name+".yaml", "where templates and requests are saved; an existing file is kept and compared")
	c.dryRun.RegisterBare(command)
	command.Flags().DurationVar(&c.limit, "step-timeout", defaultLimit, "how long one step may wait for virt-operator")
	c.cluster.RegisterUnnamespaced(command.Flags())
	return command
}

func (c *handing) run(ctx context.Context) error {
	h := &handover{backup: backup{c.file, c.streams.Err}}
	var err error
	if h.namespace, h.name, err = named(c.release); err != nil {
		return err
	}
	if h.client, err = c.cluster.Client(c.streams.Err); err != nil {
		return err
	}
	h.client.Namespace = ""
	if err := h.start(ctx); err != nil {
		return err
	}
	if c.before != nil {
		if err := c.before(ctx, h); err != nil {
			return err
		}
	}
	if err := take(ctx, c.streams, c.steps(h), c.dryRun.Requested(), c.limit); err != nil || c.dryRun.Requested() {
		return err
	}
	fmt.Fprintln(c.streams.Out, c.last(h))
	return nil
}
