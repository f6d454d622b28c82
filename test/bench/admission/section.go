package admission

import (
	"fmt"
	"slices"
	"time"

	"github.com/vmstencil/stencil/test/bench/report"
	"github.com/vmstencil/stencil/test/bench/statistics"
)

// The project's targets, with targetClients clients.
const (
	// wantedOne and wantedTwo are the processor time of all servers over that with the floor, for one call and for two.
	wantedOne = 1.1
	wantedTwo = 1.2
	// wantedCall is the manager's processor time for a call.
	wantedCall = 400 * time.Microsecond
)

// confidence of the intervals.
const confidence = 0.95

// comparison is a set-up and the one that it is compared with.
type comparison struct {
	setup, base setup
	cells       map[string]*cell
	clients     int
}

// costs are the processor time of the set-up over that of the other one, by round.
func (c comparison) costs() []float64 {
	return statistics.Ratios(c.cells[c.setup.name].costs(), c.cells[c.base.name].costs())
}

// managers are the manager's processor time for one of its calls, by round, in nanoseconds.
func (c comparison) managers() []float64 {
	of := c.cells[c.setup.name]
	return statistics.Ratios(of.cpu[managerProcess], of.calls)
}

// Section reports the result.
func (r *Result) Section(context string) report.Section {
	free, governed := r.free[targetClients], r.governed[targetClients]
	one := comparison{rendered, floorOne, free, targetClients}
	two := comparison{evaluated, floorTwo, governed, targetClients}
	section := report.Section{
		Name:    "admission",
		Context: fmt.Sprintf("%s; medians of %d rounds", context, len(free[floorOne.name].p50)),
		Tables: []report.Table{
			r.floorTable(one, two),
			processorTime(fmt.Sprintf("Processor time per create where nothing governs, clients: %d", targetClients), []setup{without, bareFloor, floorOne, rendered}, free),
			processorTime(fmt.Sprintf("Processor time per create where an approval and a policy do, clients: %d", targetClients), []setup{floorTwo, evaluated}, governed),
			r.latencies(),
		},
		Notes: []string{
			"The floor answers every create with the patch that Stencil answered for the same machine, so all requests end with the same object. It is called by the rules and conditions of Stencil's own webhooks, serves HTTP/1.1 over TLS as the manager does, and runs in a process of its own. Ratios are of the processor time of all processes but the clients; they are taken within a round, and then the median of them. An interval holds the true median with the confidence behind it, without assumptions about the distribution.",
			"Stencil's admission policies, which the API server evaluates itself, are in force with the floor as well: the ratio is about the webhooks. What policies take shows the row without them.",
		},
		Targets: []report.Target{
			costTarget("where nothing governs", one, wantedOne),
			costTarget("where an approval and a policy do", two, wantedTwo),
			callTarget("rendering alone", one),
			callTarget("rendering and judging", two),
		},
	}
	if len(r.single) == 0 {
		return section
	}
	withoutEvaluation, target := r.withoutEvaluation()
	section.Tables = append(section.Tables, withoutEvaluation)
	section.Targets = append(section.Targets, target)
	return section
}

func costTarget(where string, c comparison, wanted float64) report.Target {
	costs := c.costs()
	return report.Target{
		What:   fmt.Sprintf("processor time over the floor's, %s, %d clients", where, c.clients),
		Wanted: fmt.Sprintf("≤ %.1f", wanted), Measured: ratio(costs), Met: statistics.Median(costs) <= wanted,
	}
}

func callTarget(what string, c comparison) report.Target {
	call := statistics.Median(c.managers())
	return report.Target{
		What:   fmt.Sprintf("the manager's processor time for a call, %s, %d clients", what, c.clients),
		Wanted: "≤ 0.40 ms", Measured: report.Milliseconds(time.Duration(call)), Met: call <= float64(wantedCall),
	}
}

// floorTable is Stencil beside the floor.
func (r *Result) floorTable(comparisons ...comparison) report.Table {
	table := report.Table{
		Title:   "Processor time per create beside the floor, all processes but the clients",
		Columns: []string{"set-up", "clients", "calls", "floor", "Stencil", "over the floor (interval)", "manager a call"},
	}
	if single := r.single[1]; single != nil {
		comparisons = append(comparisons, comparison{rendered, floorOne, single, 1})
	}
	for _, c := range comparisons {
		table.Rows = append(table.Rows, []string{
			c.setup.name, fmt.Sprint(c.clients), calls(c.cells[c.setup.name]),
			report.Milliseconds(time.Duration(statistics.Median(c.cells[c.base.name].costs()))),
			report.Milliseconds(time.Duration(statistics.Median(c.cells[c.setup.name].costs()))),
			ratio(c.costs()), report.Milliseconds(time.Duration(statistics.Median(c.managers()))),
		})
	}
	return table
}

// latencies is the table of all set-ups.
func (r *Result) latencies() report.Table {
	table := report.Table{Title: "Latency of dry-run creates", Columns: []string{"set-up", "clients", "p50", "p95", "p99", "creates/s"}}
	for _, group := range []struct {
		clients int
		setups  []setup
		grid    grid
	}{
		{1, []setup{without, noRef, floorOne, rendered}, r.single},
		{targetClients, []setup{without, floorOne, rendered}, r.free},
		{targetClients, []setup{floorTwo, evaluated}, r.governed},
	} {
		for _, s := range group.setups {
			c := group.grid[group.clients][s.name]
			if c == nil {
				continue
			}
			table.Rows = append(table.Rows, []string{
				s.name, fmt.Sprint(group.clients), milliseconds(c.p50), milliseconds(c.p95), milliseconds(c.p99), fmt.Sprintf("%.0f", statistics.Median(c.throughput)),
			})
		}
	}
	return table
}

// withoutEvaluation is the cost for VMs without a template-ref, beside the difference that the method shows for two equal set-ups.
func (r *Result) withoutEvaluation() (report.Table, report.Target) {
	table := report.Table{
		Title:   "VMs without template-ref: each round's median over that of no webhook",
		Columns: []string{"set-up", "clients", "rounds", "p50 (interval)", "throughput (interval)"},
	}
	cells := r.single[1]
	base := cells[without.name]
	for _, s := range []setup{control, noRef} {
		c := cells[s.name]
		table.Rows = append(table.Rows, []string{
			s.name, "1", fmt.Sprint(len(c.p50)), ratio(statistics.Ratios(c.p50, base.p50)), ratio(statistics.Ratios(c.throughput, base.throughput)),
		})
	}
	cost, apart := statistics.Ratios(cells[noRef.name].p50, base.p50), statistics.Ratios(cells[control.name].p50, base.p50)
	return table, report.Target{
		What:     "p50 without template-ref over p50 without webhook, 1 client",
		Wanted:   "as the control: " + ratio(apart),
		Measured: ratio(cost),
		Met:      statistics.MedianInterval(cost, confidence).Low <= statistics.MedianInterval(apart, confidence).High,
	}
}

// processorTime is a table of the processes that took some.
func processorTime(title string, setups []setup, cells map[string]*cell) report.Table {
	setups = slices.DeleteFunc(slices.Clone(setups), func(s setup) bool { return cells[s.name] == nil })
	table := report.Table{Title: title, Columns: []string{"set-up", "calls"}}
	for _, s := range setups {
		table.Rows = append(table.Rows, []string{s.name, calls(cells[s.name])})
	}
	add := func(column string, of func(*cell) []float64) {
		values, some := make([]float64, len(setups)), false
		for i, s := range setups {
			values[i] = statistics.Median(of(cells[s.name]))
			some = some || values[i] > 0
		}
		if !some {
			return
		}
		table.Columns = append(table.Columns, column)
		for i, value := range values {
			table.Rows[i] = append(table.Rows[i], fmt.Sprintf("%.0f µs", value/1e3))
		}
	}
	for _, name := range servers {
		add(name, func(c *cell) []float64 { return c.cpu[name] })
	}
	add("all of these", (*cell).costs)
	add("clients", func(c *cell) []float64 { return c.cpu[clientProcess] })
	return table
}

// calls prints how many calls of webhooks a create takes.
func calls(c *cell) string { return fmt.Sprintf("%.2f", statistics.Median(c.calls)) }

func milliseconds(values []float64) string {
	return report.Milliseconds(time.Duration(statistics.Median(values)))
}

// ratio prints the median of ratios with the interval in which it lies.
func ratio(values []float64) string {
	interval := statistics.MedianInterval(values, confidence)
	return fmt.Sprintf("%.3f (%.3f–%.3f, %.0f %%)", statistics.Median(values), interval.Low, interval.High, 100*interval.Confidence)
}
