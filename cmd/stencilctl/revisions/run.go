package revisions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
)

// Defaults of the flags.
const (
	defaultTimeout = time.Hour
	defaultRate    = 10
)

// run is one of the commands that set a mode.
type run struct {
	target
	mode              v1alpha1.RevisionMigrationMode
	name, short, long string

	namespaces []string
	selector   string
	rate       int32
	wait       bool
	cli.Following
}

func newRun(streams cli.Streams, r run) *cobra.Command {
	r.target = newTarget(streams)
	command := &cobra.Command{
		Use:   r.name,
		Short: r.short,
		Long: r.long + `

Progress is printed on standard error. The exit code is 1 if copies were skipped or failed, and if it is not finished when the timeout is over; it
goes on then.`,
		Example: fmt.Sprintf(`  stencilctl revisions %s
  stencilctl revisions %s --namespaces team-a,team-b --rate 50 -o json`, r.name, r.name),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(command *cobra.Command, _ []string) error { return r.execute(command.Context()) },
	}
	r.register(command)
	flags := command.Flags()
	flags.StringSliceVar(&r.namespaces, "namespaces", nil, "namespaces to process, separated by commas (default all)")
	flags.StringVarP(&r.selector, "selector", "l", "", "labels of the VirtualMachines and VirtualMachineSnapshots whose copies are processed (default all)")
	flags.Int32Var(&r.rate, "rate", defaultRate, "copies per second; 0 is no limit")
	flags.BoolVar(&r.wait, "wait", true, "wait for the result")
	r.Register(flags, defaultTimeout)
	return command
}

func (r *run) execute(ctx context.Context) error {
	if err := r.Check(); err != nil {
		return err
	}
	if r.rate < 0 {
		return cli.Usage(errors.New("--rate must not be negative"))
	}
	var selector *metav1.LabelSelector
	if r.selector != "" {
		parsed, err := metav1.ParseToLabelSelector(r.selector)
		if err != nil {
			return cli.Usage(fmt.Errorf("--selector: %w", err))
		}
		selector = parsed
	}
	if err := r.connect(); err != nil {
		return err
	}
	object, err := r.client.Patch(ctx, revisionMigrations, "", v1alpha1.RevisionMigrationName, map[string]any{"spec": map[string]any{
		"mode": r.mode, "namespaces": r.namespaces, "selector": selector, "rate": r.rate,
	}}, cluster.Written{})
	if err != nil {
		return cluster.Failed("changing the RevisionMigration", err)
	}
	migration, err := decode(object)
	if err != nil {
		return err
	}
	if !r.wait {
		fmt.Fprintf(r.streams.Out, "revisionmigration.%s/%s is in mode %s\n", v1alpha1.GroupName, migration.Name, r.mode)
		return nil
	}
	return r.follow(ctx, migration.Generation)
}

// follow prints progress until the mode was carried out, and the report at the end.
func (r *run) follow(ctx context.Context, generation int64) error {
	printed := ""
	return r.Follow(ctx, r.streams, "the RevisionMigration", func() (done bool, err error) {
		migration, err := r.get(ctx)
		if err != nil {
			return false, err
		}
		condition := meta.FindStatusCondition(migration.Status.Conditions, v1alpha1.ConditionPassComplete)
		if condition == nil || condition.ObservedGeneration != generation {
			return false, nil
		}
		if line := progress(migration); line != printed {
			fmt.Fprintln(r.streams.Err, line)
			printed = line
		}
		if condition.Reason == v1alpha1.ReasonPassRunning {
			return false, nil
		}
		return true, r.end(migration, condition)
	})
}

func progress(m *v1alpha1.RevisionMigration) string {
	s := m.Status
	return fmt.Sprintf("migrated %d, rolled back %d, healed %d, skipped %d, failed %d; %d of %d copies are old",
		number(s.Migrated), number(s.RolledBack), number(s.Healed), number(s.Skipped), number(s.Failed), number(s.Old), number(s.Copies))
}

func (r *run) end(m *v1alpha1.RevisionMigration, condition *metav1.Condition) error {
	if err := r.print(m); err != nil {
		return err
	}
	if condition.Status != metav1.ConditionTrue {
		return cli.ErrFindings
	}
	return nil
}
