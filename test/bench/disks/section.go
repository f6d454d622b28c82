package disks

import (
	"fmt"

	"github.com/vmstencil/stencil/test/bench/report"
	"github.com/vmstencil/stencil/test/bench/statistics"
)

// Section reports the result.
func (r *Result) Section(context string) report.Section {
	mebibytes := float64(r.bytes) / (1 << 20)
	table := report.Table{
		Title:   fmt.Sprintf("%.0f MiB of data in a disk of eight times the size", mebibytes),
		Columns: []string{"work", "Stencil", "qemu-img", "qemu-img takes", "qemu-img's processor time"},
	}
	section := report.Section{Name: "disks", Context: fmt.Sprintf("%s; %s; medians of %d rounds", context, r.qemu, len(r.ours[0]))}
	for i, w := range works {
		ours, theirs := elapsed(r.ours[i]), elapsed(r.theirs[i])
		ratio := statistics.Median(statistics.Ratios(theirs, ours))
		table.Rows = append(table.Rows, []string{
			w.name,
			speed(mebibytes, statistics.Median(ours)),
			speed(mebibytes, statistics.Median(theirs)),
			report.Times(ratio),
			report.Times(statistics.Median(statistics.Ratios(processor(r.theirs[i]), processor(r.ours[i])))),
		})
		section.Targets = append(section.Targets, report.Target{
			What: target(w), Wanted: "≥ " + report.Times(w.wanted), Measured: report.Times(ratio), Met: ratio >= w.wanted,
		})
	}
	section.Tables = []report.Table{table}
	section.Notes = []string{fmt.Sprintf(
		"Both are processes, and each work reads a file and writes one, in the page cache. The VMDK that Stencil writes has %.2f times the bytes of qemu-img's. Everything that Stencil has written in the first round is compared by qemu-img. The last work has the zstd library with its defaults in the place of qemu-img, and a disk without holes; its layer has %.2f times the bytes of the library's.",
		float64(r.ourVMDK)/float64(r.theirVMDK), float64(r.ourLayer)/float64(r.theirLayer))}
	return section
}

// target names the target of a work.
func target(w work) string {
	if w.other != "" {
		return w.name + ": speed"
	}
	return w.name + ": speed beside qemu-img's"
}

func speed(mebibytes, nanoseconds float64) string {
	return fmt.Sprintf("%.0f MiB/s", mebibytes/nanoseconds*1e9)
}

func elapsed(costs []cost) []float64 {
	return each(costs, func(c cost) float64 { return c.elapsed })
}

func processor(costs []cost) []float64 {
	return each(costs, func(c cost) float64 { return c.processor })
}

func each(costs []cost, of func(cost) float64) []float64 {
	values := make([]float64, len(costs))
	for i, c := range costs {
		values[i] = of(c)
	}
	return values
}
