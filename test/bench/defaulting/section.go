package defaulting

import (
	"fmt"
	"slices"
	"time"

	"github.com/vmstencil/stencil/test/bench/load"
	"github.com/vmstencil/stencil/test/bench/report"
	"github.com/vmstencil/stencil/test/bench/statistics"
)

// The project's targets.
const (
	wantedHit      = 100 * time.Microsecond
	wantedHitRate  = 20_000
	wantedMiss     = 8 * time.Millisecond
	wantedMissRate = 300
	wantedStart    = time.Second
	wantedMemory   = 120 << 20
	// wantedGrowth is how much memory may grow over the second half of the defines and still count as flat.
	wantedGrowth = 4 << 20
)

// Section reports the result.
func (r *Result) Section(context string) report.Section {
	rate := func(s load.Sample) string { return fmt.Sprintf("%.0f/s", s.Throughput()) }
	row := func(what string, e exercise) []string {
		return []string{what, report.Microseconds(e.one.Quantile(0.5)), report.Microseconds(e.one.Quantile(0.99)), rate(e.many), fmt.Sprint(crowd)}
	}
	memory := report.Table{Title: "Resident memory of supervisor and worker", Columns: []string{"after defines", "resident"}}
	largest := int64(0)
	for _, reading := range r.memory {
		memory.Rows = append(memory.Rows, []string{fmt.Sprint(reading.defines), report.MiB(reading.resident)})
		largest = max(largest, reading.resident)
	}
	last, middle := r.memory[len(r.memory)-1], r.memory[len(r.memory)/2]
	growth := last.resident - middle.resident
	cold := median(r.starts)
	hit, miss := time.Duration(r.same.one.Quantile(0.5)), time.Duration(r.unknown.one.Quantile(0.5))
	return report.Section{
		Name:    "defaulting",
		Context: fmt.Sprintf("%s; median of %d starts", context, len(r.starts)),
		Tables: []report.Table{{
			Title:   "One request through the socket",
			Columns: []string{"request", "p50, one client", "p99, one client", "answers", "by clients"},
			Rows: [][]string{
				{"one that nothing is done for", report.Microseconds(r.idle.Quantile(0.5)), report.Microseconds(r.idle.Quantile(0.99)), "", ""},
				row("another machine of one template", r.same),
				row("a machine of a known shape", r.noted),
				row("a machine of an unknown shape", r.unknown),
			},
		}, memory},
		Targets: []report.Target{
			{What: "another machine of one template: p50 with one client", Wanted: "≤ 100 µs", Measured: report.Microseconds(float64(hit)), Met: hit <= wantedHit},
			{What: "another machine of one template: answers with 16 clients", Wanted: "≥ 20000/s", Measured: rate(r.same.many), Met: r.same.many.Throughput() >= wantedHitRate},
			{What: "unknown shape: p50 with one client", Wanted: "≤ 8 ms", Measured: report.Milliseconds(miss), Met: miss <= wantedMiss},
			{What: "unknown shapes: answers on two cores", Wanted: "≥ 300/s", Measured: rate(r.unknown.many), Met: r.unknown.many.Throughput() >= wantedMissRate},
			{What: "from the start of the process to the first answer, nothing cached", Wanted: "≤ 1 s", Measured: report.Seconds(cold), Met: cold <= wantedStart},
			{What: fmt.Sprintf("resident after %d defines", last.defines), Wanted: "≤ 120 MiB", Measured: report.MiB(last.resident), Met: largest <= wantedMemory},
			{What: fmt.Sprintf("growth from %d defines on", middle.defines), Wanted: "≤ 4 MiB", Measured: report.MiB(growth), Met: growth <= wantedGrowth},
		},
		Notes: []string{"Client and defaulter share the cores. What nothing is done for is /healthz: what two processes take to send each other a request and an answer. A machine of an unknown shape takes two defines in libvirt; shapes differ in what moves no device, so each costs the same. What the webhook asks about another machine of one template is the same to the byte, and each is given a UUID of its own; the row after it is of machines that differ in something that might matter, here an annotation."},
	}
}

func median(values []time.Duration) time.Duration {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return statistics.Quantile(sorted, 0.5)
}
