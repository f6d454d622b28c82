package revisions

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// none is shown in the cell of a table that has no value.
const none = "<none>"

func newReport(streams cli.Streams) *cobra.Command {
	t := newTarget(streams)
	command := &cobra.Command{
		Use:   "report",
		Short: "Show the versions of stored instance types",
		Long: `Show the versions of stored instance types and preferences, and what refers to them, as Stencil's manager found them last.

The exit code is 0 if the old versions of the API can be removed: every copy in the cluster has the current version and its labels. Otherwise it
is 1.`,
		Example: `  stencilctl revisions report
  stencilctl revisions report -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := t.connect(); err != nil {
				return err
			}
			migration, err := t.get(command.Context())
			if err != nil {
				return err
			}
			return t.report(command.Context(), migration)
		},
	}
	t.register(command)
	return command
}

// report prints the report, and fails with findings while old versions are stored.
func (t *target) report(_ context.Context, m *v1alpha1.RevisionMigration) error {
	if err := t.print(m); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionNoOldVersions) {
		return cli.ErrFindings
	}
	return nil
}

func (t *target) print(m *v1alpha1.RevisionMigration) error {
	if !t.format.Is(cli.Table) {
		m.ManagedFields = nil
		return t.format.Write(t.streams.Out, m)
	}
	rows := [][]string{{"VERSION", "CLASS", "COPIES"}}
	for _, class := range m.Status.Classes {
		version := class.Version
		if version == "" {
			version = none
		}
		rows = append(rows, []string{version, class.Class, strconv.Itoa(int(class.Count))})
	}
	if err := cli.Columns(t.streams.Out, rows...); err != nil {
		return err
	}
	s := m.Status
	duplicates := v1alpha1.RevisionDuplicates{}
	if s.Duplicates != nil {
		duplicates = *s.Duplicates
	}
	fmt.Fprintf(t.streams.Out, "\norphans %d, dangling references %d, mismatched %d, snapshots without a copy %d, duplicates %d (%d bytes), backups %d\n",
		number(s.Orphans), number(s.Dangling), number(s.Mismatched), number(s.Unpinned), duplicates.Count, duplicates.Bytes, number(s.Backups))
	if len(s.Findings) > 0 {
		rows = [][]string{{"FINDING", "NAMESPACE", "OBJECT", "MESSAGE"}}
		for _, f := range s.Findings {
			rows = append(rows, []string{string(f.Kind), f.Namespace, f.Object, f.Message})
		}
		fmt.Fprintln(t.streams.Out)
		if err := cli.Columns(t.streams.Out, rows...); err != nil {
			return err
		}
	}
	fmt.Fprintln(t.streams.Out)
	for _, condition := range s.Conditions {
		fmt.Fprintf(t.streams.Out, "%s %s (%s): %s\n", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	return nil
}

func number(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}
