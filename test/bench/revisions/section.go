package revisions

import (
	"fmt"

	"github.com/vmstencil/stencil/test/bench/report"
)

// The project's targets.
const (
	wantedRatio  = 1.2
	wantedMemory = 150 << 20
)

// Section reports the result.
func (r *Result) Section(context string) report.Section {
	count := fmt.Sprintf("%d stored copies", r.options.Revisions)
	ratio := r.migration.Seconds() / r.bare.Seconds()
	return report.Section{
		Name:    "revisions",
		Context: fmt.Sprintf("%s; %s", context, count),
		Tables: []report.Table{{
			Title:   "stencil-manager migrating stored instance types",
			Columns: []string{"what", "measured"},
			Rows: [][]string{
				{"a client with 8 workers: create, delete, create", report.Seconds(r.bare)},
				{"the manager, from the change of the mode to the condition Complete", report.Seconds(r.migration)},
				{"resident after that (VmRSS)", report.MiB(r.memory.Resident)},
				{"largest ever (VmHWM)", report.MiB(r.memory.Peak)},
			},
		}},
		Targets: []report.Target{
			{What: "time beside the client", Wanted: "≤ 1.2", Measured: fmt.Sprintf("%.2f", ratio), Met: ratio <= wantedRatio},
			{What: "memory (VmHWM)", Wanted: "≤ 150 MiB", Measured: report.MiB(r.memory.Peak), Met: r.memory.Peak <= wantedMemory},
		},
		Notes: []string{"For each copy the manager also creates the replacement in a dry run, and it lists all before. The API server shares the machine's cores, and evaluates Stencil's policies for both."},
	}
}
