package engine

import (
	"fmt"

	"github.com/vmstencil/stencil/test/bench/measurement"
	"github.com/vmstencil/stencil/test/bench/report"
)

// The project's targets for rendering one VM.
const (
	wantedNanoseconds = 10_000
	wantedAllocations = 60
)

// Section reports the result.
func (r *Result) Section(context string) report.Section {
	table := report.Table{
		Title:   "One Fedora VM",
		Columns: []string{"work", "time", "memory", "allocations", "Helm to JSON takes"},
	}
	helm := r.HelmJSON.Time()
	for _, row := range []struct {
		work     string
		measured measurement.Series
	}{
		{"Stencil: bind and render, everything generated", r.Render},
		{"Stencil: bind the name, bind and render, as for a request", r.Request},
		{"Stencil: compile (once per template version)", r.Compile},
		{"Stencil: compile, bind and render", r.All},
		{"Helm: values, parse and render to YAML", r.HelmText},
		{"Helm: values, parse, render and convert to JSON", r.HelmJSON},
	} {
		time := row.measured.Time()
		table.Rows = append(table.Rows, []string{
			row.work,
			report.Microseconds(time),
			fmt.Sprintf("%.0f B", row.measured.Memory()),
			fmt.Sprintf("%.0f", row.measured.Allocations()),
			report.Times(helm / time),
		})
	}
	table.Rows = append(table.Rows, []string{"KubeVirt's published engine (quoted, not measured here)", "66–130 µs", "", "820–855", ""})

	time, count := r.Render.Time(), r.Render.Allocations()
	return report.Section{
		Name:    "engine",
		Context: fmt.Sprintf("%s; medians of %d rounds", context, len(r.Render)),
		Tables:  []report.Table{table},
		Targets: []report.Target{
			{What: "render: time", Wanted: "≤ 10 µs", Measured: report.Microseconds(time), Met: time <= wantedNanoseconds},
			{What: "render: allocations", Wanted: "≤ 60", Measured: fmt.Sprintf("%.0f", count), Met: count <= wantedAllocations},
		},
		Notes: []string{
			"Both engines render an equal object from equal parameters; each round checks it. Where everything is generated, both draw a name and a password from the operating system's randomness for each VM. Helm has no compiled form of a template: the row of Stencil that does as much is the one with compile in it.",
		},
	}
}
