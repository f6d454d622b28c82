package approvals

import (
	"fmt"
	"time"

	"github.com/vmstencil/stencil/test/bench/report"
	"github.com/vmstencil/stencil/test/bench/statistics"
)

// Targets of the project.
const (
	wantedRatio  = 1.1
	wantedActive = 1.5
	wantedMemory = 250 << 20
)

// Section reports the result.
func (r *Result) Section(context string) report.Section {
	section := report.Section{
		Name:    "approvals",
		Context: fmt.Sprintf("%s; medians of %d rounds; %d namespaces", context, r.options.Rounds, r.options.Namespaces),
	}
	many := fmt.Sprintf("%d approvals", r.options.Approvals+1)
	costs := report.Table{Title: "Processor time of the API server for one write", Columns: []string{"write", "one approval", many, "ratio", "one approval, measured again", "other requests meanwhile"}}
	for _, kind := range r.kinds {
		few, more := r.few.perWrite[kind], r.many.perWrite[kind]
		ratio, again := ratios(few, more)
		text := fmt.Sprintf("%.2f", ratio)
		costs.Rows = append(costs.Rows, []string{kind, report.Milliseconds(median(few)), report.Milliseconds(median(more)), text, fmt.Sprintf("%.2f", again),
			fmt.Sprintf("%.0f, %.0f", statistics.Median(r.few.others[kind]), statistics.Median(r.many.others[kind]))})
		section.Targets = append(section.Targets, report.Target{
			What: kind + ": " + many + " beside one", Wanted: "≤ 1.1×", Measured: text + "×", Met: ratio <= wantedRatio,
		})
	}
	costs.Rows = append(costs.Rows, []string{"a second without any", report.Milliseconds(median(r.few.idle)), report.Milliseconds(median(r.many.idle)), "", "",
		fmt.Sprintf("%.0f, %.0f", statistics.Median(r.few.idleRequests), statistics.Median(r.many.idleRequests))})
	ratio := float64(r.active) / float64(r.bare)
	writes := float64(r.writes) / float64(r.options.Namespaces)
	section.Tables = []report.Table{costs, {
		Title:   fmt.Sprintf("An approval that selects %d namespaces", r.options.Namespaces),
		Columns: []string{"what", "measured"},
		Rows: [][]string{
			{"a client that patches them, 16 at a time", report.Seconds(r.bare)},
			{"until the approval is active in all", report.Seconds(r.active)},
			{"patches for each namespace", fmt.Sprintf("%.3f", writes)},
			{"manager, resident (VmRSS)", report.MiB(r.memory.Resident)},
			{"manager, largest ever (VmHWM)", report.MiB(r.memory.Peak)},
		},
	}}
	section.Targets = append(section.Targets,
		report.Target{What: "active in all namespaces, beside the client", Wanted: "≤ 1.5×", Measured: fmt.Sprintf("%.2f×", ratio), Met: ratio <= wantedActive},
		report.Target{What: "writes for each namespace", Wanted: "≤ 1", Measured: fmt.Sprintf("%.3f", writes), Met: writes <= 1.001},
		report.Target{What: "memory of the manager", Wanted: "≤ 250 MiB", Measured: report.MiB(r.memory.Peak), Met: r.memory.Peak <= wantedMemory},
	)
	section.Notes = []string{"Each measurement with many approvals is divided by the mean of the two with one approval around it. The approvals that are added select no namespace that exists, half by labels, half by name. VirtualMachines are created in dry runs, without KubeVirt's own webhooks. The client and the manager share the processors with the API server."}
	return section
}

// ratios returns the medians of many beside the mean of the two measurements of few around it, and of each few beside the one before it, which differs from
// 1 by what the host alone does.
func ratios(few, many []time.Duration) (ratio, again float64) {
	var beside, control []float64
	for i, each := range many {
		beside = append(beside, 2*float64(each)/float64(few[i]+few[i+1]))
		control = append(control, float64(few[i+1])/float64(few[i]))
	}
	return statistics.Median(beside), statistics.Median(control)
}

func median(durations []time.Duration) time.Duration {
	values := make([]float64, len(durations))
	for i, one := range durations {
		values[i] = float64(one)
	}
	return time.Duration(statistics.Median(values))
}
