package cache

import (
	"fmt"
	"time"

	"github.com/vmstencil/stencil/test/bench/report"
	"github.com/vmstencil/stencil/test/bench/statistics"
)

// The project's targets for a manager with at most 10 000 templates.
const (
	wantedMemory = 150 << 20
	wantedReady  = 5 * time.Second
	wantedRatio  = 1.3
)

// Section reports the result.
func (r *Result) Section(context string) report.Section {
	full := medians(r.full)
	listed, reflected := medianOf(r.listed, time.Duration.Seconds), medianOf(r.reflected, time.Duration.Seconds)
	ratio := full.list.Seconds() / reflected
	count := fmt.Sprintf("%d templates", r.templates)
	row := func(what string, of func(start) string) []string { return []string{what, of(r.empty), of(full)} }
	return report.Section{
		Name:    "cache",
		Context: fmt.Sprintf("%s; medians of %d starts; %s of %d bytes of JSON on average", context, len(r.full), count, r.size),
		Tables: []report.Table{{
			Title:   "stencil-manager after a start",
			Columns: []string{"what", "no template", count},
			Rows: [][]string{
				row("from the start of the process until ready", func(s start) string { return report.Seconds(s.process) }),
				row("from the request for the list until ready", func(s start) string { return report.Seconds(s.list) }),
				{"for comparison: a reflector of client-go that stores nothing", "", fmt.Sprintf("%.2f s", reflected)},
				{"for comparison: a client that lists and decodes them once", "", fmt.Sprintf("%.2f s", listed)},
				row("processor time until ready", func(s start) string { return report.Seconds(s.cpu) }),
				row("resident when ready (VmRSS)", func(s start) string { return report.MiB(s.ready.Resident) }),
				row("resident a while later (VmRSS)", func(s start) string { return report.MiB(s.later.Resident) }),
				row("of it the program's file (RssFile)", func(s start) string { return report.MiB(s.later.File) }),
				row("of it everything else (RssAnon)", func(s start) string { return report.MiB(s.later.Own) }),
				row("largest VmRSS in that while", func(s start) string { return report.MiB(s.largest) }),
				row("largest ever (VmHWM)", func(s start) string { return report.MiB(s.later.Peak) }),
				{"resident per template", "", fmt.Sprintf("%.1f KiB", float64(full.later.Resident-r.empty.later.Resident)/1024/float64(r.templates))},
			},
		}},
		Targets: []report.Target{
			{
				What: count + ": largest VmRSS from ready on", Wanted: "≤ 150 MiB",
				Measured: report.MiB(full.largest), Met: full.largest <= wantedMemory,
			},
			{
				What: count + ": ready, counted from the request for the list", Wanted: "≤ 5 s",
				Measured: report.Seconds(full.list), Met: full.list <= wantedReady,
			},
			{
				What: count + ": the same beside a reflector that stores nothing", Wanted: "≤ 1.3×",
				Measured: fmt.Sprintf("%.2f×", ratio), Met: ratio <= wantedRatio,
			},
		},
		Notes: []string{fmt.Sprintf(
			"Counted from the request, the time includes the API server's, which ends the list of a watch up to a second after its last object. Templates are compiled after the list has arrived, or when they are needed; the manager's reconcilers work on them at the same time. The while is %s, 5 s where there is no template; nothing forces a garbage collection in it.",
			observation)},
	}
}

// medians takes the median of each number.
func medians(starts []start) start {
	median := func(of func(start) float64) float64 { return medianOf(starts, of) }
	var m start
	m.process = time.Duration(median(func(s start) float64 { return float64(s.process) }))
	m.list = time.Duration(median(func(s start) float64 { return float64(s.list) }))
	m.cpu = time.Duration(median(func(s start) float64 { return float64(s.cpu) }))
	m.ready.Resident = int64(median(func(s start) float64 { return float64(s.ready.Resident) }))
	m.later.Resident = int64(median(func(s start) float64 { return float64(s.later.Resident) }))
	m.later.File = int64(median(func(s start) float64 { return float64(s.later.File) }))
	m.later.Own = int64(median(func(s start) float64 { return float64(s.later.Own) }))
	m.later.Peak = int64(median(func(s start) float64 { return float64(s.later.Peak) }))
	m.largest = int64(median(func(s start) float64 { return float64(s.largest) }))
	return m
}

func medianOf[T any](measured []T, of func(T) float64) float64 {
	values := make([]float64, len(measured))
	for i, each := range measured {
		values[i] = of(each)
	}
	return statistics.Median(values)
}
