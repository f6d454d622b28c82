package readiness

import (
	"fmt"
	"slices"
	"time"

	"github.com/vmstencil/stencil/test/bench/report"
)

// The project's targets.
const (
	wantedRate   = 1.0
	wantedMemory = 200 << 20
	wantedFlip   = 5 * time.Second
)

// Section reports the result.
func (r *Result) Section(context string) report.Section {
	count := fmt.Sprintf("%d templates with %d DataSources", r.options.Templates, r.options.DataSources)
	rate := float64(r.reconciles) / r.options.Steady.Seconds()
	slowest, dependents := slices.Max(r.flips), r.options.Templates/r.options.DataSources
	return report.Section{
		Name:    "readiness",
		Context: fmt.Sprintf("%s; %s", context, count),
		Tables: []report.Table{{
			Title:   "stencil-manager keeping the readiness of templates",
			Columns: []string{"what", "measured"},
			Rows: [][]string{
				{"from its start until every template has its first status", report.Seconds(r.first)},
				{fmt.Sprintf("reconciles in %s, while %d claims were touched", r.options.Steady, r.touched), fmt.Sprint(r.reconciles)},
				{"resident after that (VmRSS)", report.MiB(r.memory.Resident)},
				{"largest ever (VmHWM)", report.MiB(r.memory.Peak)},
				{fmt.Sprintf("a DataSource flips: until its %d templates are written, the slowest of %d", dependents, len(r.flips)), report.Seconds(slowest)},
				{"reconciles that a flip took, at most", fmt.Sprint(r.work)},
			},
		}},
		Targets: []report.Target{
			{What: "steady state of " + count, Wanted: "≤ 1 reconcile/s", Measured: fmt.Sprintf("%.2f /s", rate), Met: rate <= wantedRate},
			{What: "memory (VmRSS) in steady state", Wanted: "≤ 200 MiB", Measured: report.MiB(r.memory.Resident), Met: r.memory.Resident <= wantedMemory},
			{What: "a flip of a DataSource reaches its templates", Wanted: "≤ 5 s", Measured: report.Seconds(slowest), Met: slowest <= wantedFlip},
		},
		Notes: []string{"No CDI runs; DataSources and claims are written as it would. Dry runs are off. The API server shares the machine's cores."},
	}
}
