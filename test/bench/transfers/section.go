package transfers

import (
	"fmt"

	"github.com/vmstencil/stencil/test/bench/report"
	"github.com/vmstencil/stencil/test/bench/statistics"
)

// The project's targets.
const (
	wantedSpeed  = 0.8
	wantedMemory = 128 << 20
)

// Section reports the result.
func (r *Result) Section(context string) report.Section {
	mebibytes := float64(r.bytes) / (1 << 20)
	table := report.Table{
		Title:   fmt.Sprintf("%.0f MiB of data in a disk of eight times the size", mebibytes),
		Columns: []string{"work", "stencil-mover", "its codec", "speed of the codec's", "memory"},
	}
	section := report.Section{Name: "transfers", Context: fmt.Sprintf("%s; medians of %d rounds", context, len(r.mover[0]))}
	for i, w := range works {
		ratio := statistics.Median(statistics.Ratios(r.codec[i], r.mover[i]))
		memory := fmt.Sprintf("%.0f MiB", float64(r.memory[i])/(1<<20))
		table.Rows = append(table.Rows, []string{w.name, speed(mebibytes, r.mover[i]), speed(mebibytes, r.codec[i]), report.Times(ratio), memory})
		section.Targets = append(section.Targets,
			report.Target{What: w.name + ": speed beside the codec's", Wanted: "≥ " + report.Times(wantedSpeed), Measured: report.Times(ratio), Met: ratio >= wantedSpeed},
			report.Target{What: w.name + ": memory", Wanted: fmt.Sprintf("≤ %d MiB", wantedMemory>>20), Measured: memory, Met: r.memory[i] <= wantedMemory},
		)
	}
	section.Tables = []report.Table{table}
	section.Notes = []string{
		"The mover is the process of a pod, from its start until it has succeeded. It reads a package from an HTTP server on loopback, computes the digest of each member, and examines the disk for what identifies a VM; an export writes the package into a file. The codec is a process that converts the disk from file to file. Both read from the page cache, and what they write is durable at their end. Imported disks are compared with the original in the first round.",
	}
	return section
}

func speed(mebibytes float64, nanoseconds []float64) string {
	return fmt.Sprintf("%.0f MiB/s", mebibytes/statistics.Median(nanoseconds)*1e9)
}
