package process

import (
	"fmt"
	"time"

	"github.com/vmstencil/stencil/test/bench/load"
	"github.com/vmstencil/stencil/test/bench/report"
	"github.com/vmstencil/stencil/test/bench/statistics"
)

// The project's targets.
const (
	wantedThroughput = 1500
	wantedProcess    = 50 * time.Millisecond
	wantedCreate     = 3 * time.Millisecond
	wantedList       = 20 * time.Millisecond
	wantedMemory     = 120 << 20
)

// Section reports the result.
func (r *Result) Section(context string) report.Section {
	throughput := median(r.processed, load.Sample.Throughput)
	slowest := time.Duration(median(r.processed, quantile(0.99)))
	listed := time.Duration(median(r.listed, quantile(0.5)))
	adds := statistics.Median(statistics.Differences(each(r.created, quantile(0.5)), each(r.plain, quantile(0.5))))
	return report.Section{
		Name:    "process",
		Context: fmt.Sprintf("%s; medians of %d rounds; %d templates", context, r.rounds, r.templates),
		Tables: []report.Table{{
			Title:   "Through the API server",
			Columns: []string{"request", "clients", "p50", "p95", "p99", "requests/s"},
			Rows: [][]string{
				row("process", crowd, r.processed),
				row("a server that does nothing", crowd, r.idle),
				row("process", 1, r.alone),
				row("a server that does nothing", 1, r.idleAlone),
				row("plain creation of the complete VM, dry run", 1, r.plain),
				row("create, dry run", 1, r.created),
				row("availabletemplates, all", 1, r.listed),
			},
		}, {
			Title:   "stencil-apiserver afterwards",
			Columns: []string{"what", "memory"},
			Rows: [][]string{
				{"resident (VmRSS)", report.MiB(r.memory.Resident)},
				{"largest ever (VmHWM)", report.MiB(r.memory.Peak)},
			},
		}},
		Targets: []report.Target{
			{What: fmt.Sprintf("process, %d clients", crowd), Wanted: fmt.Sprintf("≥ %d/s", wantedThroughput), Measured: fmt.Sprintf("%.0f/s", throughput), Met: throughput >= wantedThroughput},
			{What: fmt.Sprintf("process, %d clients, p99", crowd), Wanted: "≤ 50 ms", Measured: report.Milliseconds(slowest), Met: slowest <= wantedProcess},
			{What: "create adds to a plain creation at p50", Wanted: "≤ 3 ms", Measured: report.SignedMilliseconds(adds), Met: adds <= float64(wantedCreate)},
			{What: fmt.Sprintf("%d available templates, p50", r.templates), Wanted: "≤ 20 ms", Measured: report.Milliseconds(listed), Met: listed <= wantedList},
			{What: fmt.Sprintf("%d templates: VmRSS", r.templates), Wanted: "≤ 120 MiB", Measured: report.MiB(r.memory.Resident), Met: r.memory.Resident <= wantedMemory},
		},
		Notes: []string{"Every request goes through kube-apiserver, which authenticates the person, hands the request on and audits nothing, on the same cores as the clients. The server that does nothing answers every request with the bytes of one answer to process, authenticates nobody and counts nothing; it is what the API server and the clients take by themselves. create and plain creation take turns; a difference is taken within a round."},
	}
}

func row(what string, clients int, rounds []load.Sample) []string {
	at := func(q float64) string { return report.Milliseconds(time.Duration(median(rounds, quantile(q)))) }
	return []string{what, fmt.Sprint(clients), at(0.5), at(0.95), at(0.99), fmt.Sprintf("%.0f", median(rounds, load.Sample.Throughput))}
}

func quantile(q float64) func(load.Sample) float64 {
	return func(s load.Sample) float64 { return s.Quantile(q) }
}

func each(rounds []load.Sample, of func(load.Sample) float64) []float64 {
	values := make([]float64, len(rounds))
	for i, round := range rounds {
		values[i] = of(round)
	}
	return values
}

func median(rounds []load.Sample, of func(load.Sample) float64) float64 {
	return statistics.Median(each(rounds, of))
}
