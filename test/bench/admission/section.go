package admission

import (
	"fmt"
	"time"

	"github.com/vmstencil/stencil/test/bench/report"
	"github.com/vmstencil/stencil/test/bench/statistics"
)

// What the project wants rendering to add at most, with targetClients clients.
const (
	wantedP50     = 2 * time.Millisecond
	wantedP99     = 8 * time.Millisecond
	wantedJudging = 1500 * time.Microsecond
	targetClients = 8
)

// confidence of the intervals.
const confidence = 0.95

// Section reports the result.
func (r *Result) Section(context string) report.Section {
	base := r.base[targetClients]
	p50 := statistics.Median(statistics.Differences(base[withRef.name].p50, base[without.name].p50))
	p99 := statistics.Median(statistics.Differences(base[withRef.name].p99, base[without.name].p99))
	cost := r.ratios(noRef)
	apart := r.ratios(control)
	governed := r.governed[targetClients]
	judging := statistics.Median(statistics.Differences(governed[judged.name].p50, governed[unjudged.name].p50))
	return report.Section{
		Name:    "admission",
		Context: fmt.Sprintf("%s; medians of %d rounds", context, len(base[without.name].p50)),
		Tables: []report.Table{
			latencies("Dry-run creates", r.base, clientNumbers),
			r.unjudgedTable(),
			processorTime("Processor time per create, 8 clients", everySetup, r.base[targetClients], []string{"kube-apiserver", "etcd", "stencil-manager", ""}),
			r.governedTable(),
			latencies("The same with KubeVirt's own webhooks", r.kubevirt, []int{targetClients}),
			processorTime("Processor time per create with KubeVirt's own webhooks, 8 clients", everySetup, r.kubevirt[targetClients], []string{"kube-apiserver", "etcd", "stencil-manager", "virt-api", "virt-controller", ""}),
		},
		Notes: []string{
			"All requests end with the same object: the complete VM of the first two set-ups is what the third is answered. Differences and ratios are taken within a round and then the median of them, so they need not agree with the difference of two medians in the table. An interval holds the true median with the confidence behind it, without assumptions about the distribution.",
			"Two webhooks that do nothing answer every create at once, from the process of the clients: the API server's own share of what webhooks cost (an AdmissionReview written and an answer read, twice), below which none can be. What rendering adds beyond them is Stencil's.",
			"Where an approval governs, the render webhook judges what was written and bound in both set-ups; the validating webhook, which one of them lacks, compares the whole VM with its template.",
			"The first tables are of a cluster without KubeVirt, so that nothing else is in the way of the difference that they are about. In the tables with KubeVirt's own webhooks the limit that virt-api sets its own requests (200 in a second, enough for 67 such VMs) is lifted; otherwise all set-ups wait for it and take the same time.",
		},
		Targets: []report.Target{
			{
				What: "rendering adds at p50, 8 clients", Wanted: "≤ 2 ms",
				Measured: report.SignedMilliseconds(p50), Met: p50 <= float64(wantedP50),
			},
			{
				What: "rendering adds at p99, 8 clients", Wanted: "≤ 8 ms",
				Measured: report.SignedMilliseconds(p99), Met: p99 <= float64(wantedP99),
			},
			{
				What: "judging adds at p50, 8 clients", Wanted: "≤ 1.5 ms",
				Measured: report.SignedMilliseconds(judging), Met: judging <= float64(wantedJudging),
			},
			{
				What:     "p50 without template-ref over p50 without webhook, 1 client",
				Wanted:   "as the control: " + ratio(apart),
				Measured: ratio(cost),
				Met:      statistics.MedianInterval(cost, confidence).Low <= statistics.MedianInterval(apart, confidence).High,
			},
		},
	}
}

// latencies is the table of all set-ups; differences are taken round by round.
func latencies(title string, g grid, clientNumbers []int) report.Table {
	table := report.Table{
		Title:   title,
		Columns: []string{"set-up", "clients", "p50", "p95", "p99", "creates/s", "adds at p50", "adds at p99", "throughput"},
	}
	for _, clients := range clientNumbers {
		base := g[clients][without.name]
		for _, s := range everySetup {
			c := g[clients][s.name]
			row := []string{
				s.name, fmt.Sprint(clients), milliseconds(c.p50), milliseconds(c.p95), milliseconds(c.p99),
				fmt.Sprintf("%.0f", statistics.Median(c.throughput)), "", "", "",
			}
			if s.name != without.name {
				row[6] = report.SignedMilliseconds(statistics.Median(statistics.Differences(c.p50, base.p50)))
				row[7] = report.SignedMilliseconds(statistics.Median(statistics.Differences(c.p99, base.p99)))
				row[8] = report.Times(statistics.Median(statistics.Ratios(c.throughput, base.throughput)))
			}
			table.Rows = append(table.Rows, row)
		}
	}
	return table
}

// ratios returns, for each of the many short rounds, the p50 of a set-up over the one without webhook.
func (r *Result) ratios(of setup) []float64 {
	return statistics.Ratios(r.unjudged[1][of.name].p50, r.unjudged[1][without.name].p50)
}

// unjudgedTable is what VMs without a template-ref pay.
func (r *Result) unjudgedTable() report.Table {
	table := report.Table{
		Title:   "VMs without template-ref: each round's median over that of no webhook",
		Columns: []string{"set-up", "clients", "rounds", "p50 (interval)", "throughput (interval)"},
	}
	add := func(s setup, clients int, cells map[string]*cell) {
		base, measured := cells[without.name], cells[s.name]
		table.Rows = append(table.Rows, []string{
			s.name, fmt.Sprint(clients), fmt.Sprint(len(measured.p50)),
			ratio(statistics.Ratios(measured.p50, base.p50)), ratio(statistics.Ratios(measured.throughput, base.throughput)),
		})
	}
	add(control, 1, r.unjudged[1])
	add(noRef, 1, r.unjudged[1])
	for _, clients := range clientNumbers {
		add(noRef, clients, r.base[clients])
	}
	return table
}

// governedTable is what the validating webhook adds where an approval asks for an approved template.
func (r *Result) governedTable() report.Table {
	table := report.Table{
		Title:   "Where an approval governs: what the validating webhook adds",
		Columns: []string{"set-up", "clients", "p50", "p99", "creates/s", "adds at p50", "adds at p99"},
	}
	for _, clients := range []int{1, targetClients} {
		base := r.governed[clients][unjudged.name]
		for _, s := range []setup{unjudged, judged} {
			c := r.governed[clients][s.name]
			row := []string{s.name, fmt.Sprint(clients), milliseconds(c.p50), milliseconds(c.p99), fmt.Sprintf("%.0f", statistics.Median(c.throughput)), "", ""}
			if !s.unjudged {
				row[5] = report.SignedMilliseconds(statistics.Median(statistics.Differences(c.p50, base.p50)))
				row[6] = report.SignedMilliseconds(statistics.Median(statistics.Differences(c.p99, base.p99)))
			}
			table.Rows = append(table.Rows, row)
		}
	}
	return table
}

func processorTime(title string, setups []setup, cells map[string]*cell, names []string) report.Table {
	table := report.Table{Title: title, Columns: []string{"set-up"}}
	for _, name := range names {
		if name == "" {
			name = "clients"
		}
		table.Columns = append(table.Columns, name)
	}
	table.Columns = append(table.Columns, "all")
	for _, s := range setups {
		row, all := []string{s.name}, 0.0
		for _, name := range names {
			median := statistics.Median(cells[s.name].cpu[name])
			row = append(row, fmt.Sprintf("%.0f µs", median/1e3))
			all += median
		}
		table.Rows = append(table.Rows, append(row, fmt.Sprintf("%.0f µs", all/1e3)))
	}
	return table
}

func milliseconds(values []float64) string {
	return report.Milliseconds(time.Duration(statistics.Median(values)))
}

// ratio prints the median of ratios with the interval in which it lies.
func ratio(values []float64) string {
	interval := statistics.MedianInterval(values, confidence)
	return fmt.Sprintf("%.3f (%.3f–%.3f, %.0f %%)", statistics.Median(values), interval.Low, interval.High, 100*interval.Confidence)
}
