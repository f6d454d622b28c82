package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/reconcilers/uninstall"
)

// remove is the command install remove.
type remove struct {
	streams cli.Streams
	cluster cluster.Flags
	format  *cli.Format
	lease   string
	release string
	hold    time.Duration
	dryRun  cli.DryRun
}

func newRemove(streams cli.Streams) *cobra.Command {
	r := remove{streams: streams, format: cli.NewFormat(cli.Table, cli.JSON, cli.YAML)}
	command := &cobra.Command{
		Use:   "remove",
		Short: "Prepare a cluster for the removal of Stencil",
		Long: `Prepare a cluster for the removal of Stencil, so that nothing waits for a manager afterwards: captures end, with their snapshots and disks
deleted, finalizers of requests and golden images are removed, and Reports of the audit are deleted. Templates, golden images, disks and
VirtualMachines stay. It works while Stencil runs and when it is gone, and can be interrupted and repeated.

It also deletes objects that only a failed revision of the Helm release had: those about admission while the release is installed, and all others
once it is uninstalled.

It takes the Lease of the leader first, so that the managers continue to serve webhooks but begin nothing. They have to be deleted before
--hold ends. helm uninstall does the same by a hook; other installers need this command before.

It takes the permissions of the ClusterRoles in the chart's templates/uninstall.yaml.`,
		Example: `  stencilctl install remove --dry-run
  stencilctl install remove && kubectl delete -f stencil.yaml`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(command *cobra.Command, _ []string) error { return r.run(command.Context()) },
	}
	command.Flags().StringVar(&r.lease, "lease", "stencil-system/stencil-manager", "NAMESPACE/NAME of the Lease of Stencil's leader")
	command.Flags().StringVar(&r.release, "release", "stencil-system/stencil", "NAMESPACE/NAME of Stencil's Helm release, of which objects of failed revisions are deleted")
	command.Flags().DurationVar(&r.hold, "hold", 10*time.Minute, "time for which no manager reconciles afterwards, at least 1m")
	r.dryRun.RegisterBare(command)
	r.cluster.RegisterUnnamespaced(command.Flags())
	r.format.Register(command, "output", "o")
	return command
}

func (r *remove) run(ctx context.Context) error {
	namespace, name, _ := strings.Cut(r.lease, "/")
	if namespace == "" || name == "" {
		return cli.Usage(fmt.Errorf("--lease %s: write NAMESPACE/NAME", r.lease))
	}
	releaseNamespace, releaseName, err := named(r.release)
	if err != nil {
		return err
	}
	if r.hold < time.Minute {
		return cli.Usage(errors.New("--hold: must be at least 1m"))
	}
	config, err := r.cluster.Config(r.streams.Err)
	if err != nil {
		return err
	}
	steps := []uninstall.Step{}
	report := func(step uninstall.Step) {
		if steps = append(steps, step); r.format.Is(cli.Table) {
			r.write(step)
		}
	}
	err = errors.Join(
		uninstall.Run(ctx, uninstall.Options{
			Config: config, Lease: types.NamespacedName{Namespace: namespace, Name: name}, Hold: r.hold, DryRun: r.dryRun.Requested(), Report: report,
		}),
		uninstall.Leftovers(ctx, config, uninstall.Release{Namespace: releaseNamespace, Name: releaseName}, r.dryRun.Requested(), report),
	)
	if !r.format.Is(cli.Table) {
		if err := r.format.Write(r.streams.Out, map[string]any{"steps": steps}); err != nil {
			return err
		}
	}
	if err != nil {
		return cli.Cluster(err)
	}
	return nil
}

func (r *remove) write(step uninstall.Step) {
	line := fmt.Sprintf("%-8s %s", step.Action, step.Object)
	if step.Note != "" {
		line += ": " + step.Note
	}
	fmt.Fprintln(r.streams.Out, line)
}
