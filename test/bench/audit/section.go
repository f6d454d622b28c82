package audit

import (
	"fmt"
	"time"

	"github.com/vmstencil/stencil/test/bench/measurement"
	"github.com/vmstencil/stencil/test/bench/report"
	"github.com/vmstencil/stencil/test/bench/statistics"
)

// The project's targets.
const (
	wantedMatch  = 30 * time.Microsecond
	wantedAudit  = time.Minute
	wantedMemory = 200 << 20
)

// Section reports the result.
func (r *Result) Section(context string) report.Section {
	of := func(number func(run) float64) float64 {
		values := make([]float64, len(r.runs))
		for i, one := range r.runs {
			values[i] = number(one)
		}
		return statistics.Median(values)
	}
	duration := time.Duration(of(func(one run) float64 { return float64(one.duration) }))
	cpu := time.Duration(of(func(one run) float64 { return float64(one.cpu) }))
	peak := int64(of(func(one run) float64 { return float64(one.memory.Peak) }))
	resident := int64(of(func(one run) float64 { return float64(one.memory.Resident) }))
	count := fmt.Sprintf("%d VMs", r.vms)
	row := func(what string, s measurement.Series) []string {
		return []string{what, report.Microseconds(s.Time()), fmt.Sprintf("%.0f B", s.Memory()), fmt.Sprintf("%.0f", s.Allocations())}
	}
	match := r.evaluating.match.Time()
	return report.Section{
		Name:    "audit",
		Context: fmt.Sprintf("%s; medians of %d rounds; a VM is %d bytes of JSON", context, len(r.runs), r.evaluating.size),
		Tables: []report.Table{
			{
				Title:   "One stored Fedora VM",
				Columns: []string{"work", "time", "memory", "allocations"},
				Rows: [][]string{
					row("reading it", r.evaluating.decode),
					row("Match: comparing it with its template", r.evaluating.match),
					row("Match under an approval with three overrides, and its values", r.evaluating.approved),
					row("finding what it has beyond its template (audit only)", r.evaluating.beyond),
				},
			},
			{
				Title:   "stencil-manager, from its start to the end of its first audit",
				Columns: []string{"what", "nothing governed", count},
				Rows: [][]string{
					{"the audit", "", report.Seconds(duration)},
					{"processor time of the process", "", report.Seconds(cpu)},
					{"resident at the end (VmRSS)", report.MiB(r.idle.Resident), report.MiB(resident)},
					{"largest ever (VmHWM)", report.MiB(r.idle.Peak), report.MiB(peak)},
				},
			},
		},
		Targets: []report.Target{
			{What: "Match of a stored Fedora VM", Wanted: "≤ 30 µs", Measured: report.Microseconds(match), Met: match <= float64(wantedMatch)},
			{What: "audit of " + count, Wanted: "≤ 60 s", Measured: report.Seconds(duration), Met: duration <= wantedAudit},
			{What: "audit of " + count + ": largest VmHWM", Wanted: "≤ 200 MiB", Measured: report.MiB(peak), Met: peak <= wantedMemory},
		},
		Notes: []string{fmt.Sprintf(
			"The VMs are in %d namespaces that one approval covers, and all conform. They are read from the API server, which shares the machine's cores, page by page; nothing forces a garbage collection.", namespaces)},
	}
}
