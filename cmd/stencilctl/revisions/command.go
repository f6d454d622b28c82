package revisions

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
)

var revisionMigrations = v1alpha1.GroupVersion.WithResource("revisionmigrations")

// NewCommand returns the command revisions with its subcommands.
func NewCommand(streams cli.Streams) *cobra.Command {
	command := &cobra.Command{
		Use:   "revisions",
		Short: "Report and migrate stored instance types",
		Long: `Report and migrate the copies of instance types and preferences that KubeVirt stores in ControllerRevisions.

They take permission to get the RevisionMigration instancetypes, and to patch it for all but report.`,
	}
	command.AddCommand(
		newReport(streams),
		newRun(streams, run{
			mode: v1alpha1.RevisionMigrationDryRun, name: "plan", short: "Try the migration of stored instance types in a dry run",
			long: `Try the migration of stored instance types: each replacement is created in a dry run under another name, so that quotas, webhooks and
policies evaluate it. Nothing is changed.`,
		}),
		newRun(streams, run{
			mode: v1alpha1.RevisionMigrationApply, name: "apply", short: "Migrate stored instance types to the current version",
			long: `Migrate stored instance types: each copy in an old version is replaced by one of the same name and content. Copies that cannot be replaced
now are tried again every minute until the mode changes, also after the command has ended.`,
		}),
		newRun(streams, run{
			mode: v1alpha1.RevisionMigrationRollback, name: "rollback", short: "Restore the stored instance types of before the migration",
			long: `Restore the originals of the copies that were replaced, as long as their backups are retained.`,
		}),
	)
	return command
}

// target is the RevisionMigration.
type target struct {
	streams cli.Streams
	cluster cluster.Flags
	client  *cluster.Client
	format  *cli.Format
}

func newTarget(streams cli.Streams) target {
	return target{streams: streams, format: cli.NewFormat(cli.Table, cli.JSON, cli.YAML)}
}

func (t *target) register(command *cobra.Command) {
	t.cluster.RegisterUnnamespaced(command.Flags())
	t.format.Register(command, "output", "o")
}

func (t *target) connect() (err error) {
	t.client, err = t.cluster.Client(t.streams.Err)
	return err
}

func (t *target) get(ctx context.Context) (*v1alpha1.RevisionMigration, error) {
	object, err := t.client.Get(ctx, revisionMigrations, "", v1alpha1.RevisionMigrationName)
	switch {
	case err != nil:
		return nil, cluster.Failed("reading the RevisionMigration", err)
	case object == nil:
		return nil, cli.Cluster(fmt.Errorf("there is no RevisionMigration %s: Stencil's manager creates it", v1alpha1.RevisionMigrationName))
	}
	return decode(object)
}

func decode(object map[string]any) (*v1alpha1.RevisionMigration, error) {
	migration := &v1alpha1.RevisionMigration{}
	if err := templates.Decode(object, migration); err != nil {
		return nil, cli.Cluster(fmt.Errorf("reading the RevisionMigration: %w", err))
	}
	return migration, nil
}
