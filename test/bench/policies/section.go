package policies

import (
	"fmt"
	"time"

	"github.com/vmstencil/stencil/test/bench/report"
	"github.com/vmstencil/stencil/test/bench/statistics"
)

// The project's targets.
var (
	wantedTime   = map[int]float64{1: 100_000, 20: 1_000_000, 100: 4_000_000} // nanoseconds
	wantedMemory = map[int]float64{1: 0.1e6, 20: 0.4e6, 100: 1.5e6}           // bytes
	// How many times as long others take.
	wantedGatekeeper  = map[int]float64{1: 8, 20: 4, 100: 4}
	wantedBare        = 3.0    // at the largest number of policies
	wantedAllocations = 8000.0 // likewise
	wantedCompile     = 2 * time.Second
	wantedHeld        = int64(200 << 20)
	wantedDelay       = 5 * time.Millisecond
	// A hostile policy ends at its timeout; the evaluator has a tenth of a second to stop it, and the good ones their time.
	wantedHostile = policyTimeout + 150*time.Millisecond
)

// Section reports the result.
func (r *Result) Section(context string) report.Section {
	compile, held := medianDuration(r.Compile), int64(statistics.Median(floats(r.Held)))
	delay := r.delay()
	section := report.Section{
		Name:    "policies",
		Context: fmt.Sprintf("%s; medians of %d rounds", context, len(r.Compile)),
		Tables:  []report.Table{r.requests(), r.load(), r.hostility()},
		Notes: []string{
			fmt.Sprintf("The VM is %d bytes of JSON. A request is what the webhook does with it: find the policies, convert the input once, evaluate, merge the answers.", r.MachineBytes),
			"OPA is the same policies as prepared queries of OPA's library with the input converted once, one after the other, without bounds, timeouts and statistics. They find the same.",
			"Gatekeeper is its own tool, `gator bench --engine=rego` of v3.23.0, run in turns with Stencil on the same VM, with six ConstraintTemplates that ask for what six of the library's policies ask for, and with as many Constraints.",
			"Kyverno is its own engine of v1.19.1, as its command line and its admission controller call it, with six ValidatingPolicies in CEL that ask for the same, compiled before, and with as many of them. Its command line compiles them again for each object.",
		},
	}
	for _, number := range Numbers {
		time, memory := r.Requests[number].Time(), r.Requests[number].Memory()
		section.Targets = append(section.Targets,
			report.Target{
				What: fmt.Sprintf("%d policies: time", number), Wanted: fmt.Sprintf("≤ %g ms", wantedTime[number]/1e6),
				Measured: report.Microseconds(time), Met: time <= wantedTime[number],
			},
			report.Target{
				What: fmt.Sprintf("%d policies: memory", number), Wanted: fmt.Sprintf("≤ %.1f MB", wantedMemory[number]/1e6),
				Measured: fmt.Sprintf("%.3f MB", memory/1e6), Met: memory <= wantedMemory[number],
			},
			r.ratio(fmt.Sprintf("%d policies: Gatekeeper takes", number), r.Gatekeeper[number].Time()/time, wantedGatekeeper[number]),
		)
	}
	most := Numbers[len(Numbers)-1]
	allocations := r.Requests[most].Allocations()
	section.Targets = append(section.Targets,
		r.ratio(fmt.Sprintf("%d policies: prepared queries of OPA take", most), r.Bare[most].Time()/r.Requests[most].Time(), wantedBare),
		report.Target{
			What: fmt.Sprintf("%d policies: allocations", most), Wanted: fmt.Sprintf("≤ %.0f", wantedAllocations),
			Measured: fmt.Sprintf("%.0f", allocations), Met: allocations <= wantedAllocations,
		},
	)
	section.Targets = append(section.Targets,
		report.Target{What: fmt.Sprintf("compiling %d policies", Many), Wanted: "≤ 2 s", Measured: report.Seconds(compile), Met: compile <= wantedCompile},
		report.Target{What: fmt.Sprintf("what %d policies hold", Many), Wanted: "≤ 200 MiB", Measured: report.MiB(held), Met: held <= wantedHeld},
		report.Target{What: "exchanging a policy delays a request", Wanted: "≤ 5 ms", Measured: report.Milliseconds(delay), Met: delay <= wantedDelay},
		report.Target{What: "a request with a hostile policy", Wanted: "≤ " + report.Milliseconds(wantedHostile), Measured: report.Milliseconds(r.slowest()), Met: r.slowest() <= wantedHostile},
	)
	return section
}

// ratio is the target for how many times as long others take.
func (r *Result) ratio(what string, measured, wanted float64) report.Target {
	return report.Target{What: what, Wanted: fmt.Sprintf("≥ %g×", wanted), Measured: fmt.Sprintf("%.2f×", measured), Met: measured >= wanted}
}

func (r *Result) requests() report.Table {
	table := report.Table{
		Title:   "One request",
		Columns: []string{"policies of the library", "with findings", "time", "memory", "allocations", "OPA", "takes", "Gatekeeper", "its memory", "takes", "Kyverno", "its memory", "takes"},
	}
	for _, number := range Numbers {
		measured, bare, other, kyverno := r.Requests[number], r.Bare[number], r.Gatekeeper[number], r.Kyverno[number]
		table.Rows = append(table.Rows, []string{
			fmt.Sprint(number), fmt.Sprint(r.Findings[number]), report.Microseconds(measured.Time()), fmt.Sprintf("%.0f B", measured.Memory()),
			fmt.Sprintf("%.0f", measured.Allocations()),
			report.Microseconds(bare.Time()), fmt.Sprintf("%.2f×", bare.Time()/measured.Time()),
			report.Microseconds(other.Time()), fmt.Sprintf("%.0f B", other.Memory()), fmt.Sprintf("%.2f×", other.Time()/measured.Time()),
			report.Microseconds(kyverno.Time()), fmt.Sprintf("%.0f B", kyverno.Memory()), fmt.Sprintf("%.2f×", kyverno.Time()/measured.Time()),
		})
	}
	return table
}

func (r *Result) load() report.Table {
	table := report.Table{
		Title:   fmt.Sprintf("%d requests a second, %d policies each", perSecond, loaded),
		Columns: []string{"meanwhile", "p50", "p99", "longest"},
	}
	for _, row := range []struct {
		what string
		all  []latencies
	}{
		{"nothing else", r.Still},
		{fmt.Sprintf("a policy exchanged every %s (%d in all)", exchangeEvery, r.Exchanges), r.Exchanged},
	} {
		table.Rows = append(table.Rows, []string{
			row.what,
			report.Milliseconds(medianOf(row.all, func(l latencies) time.Duration { return l.p50 })),
			report.Milliseconds(medianOf(row.all, func(l latencies) time.Duration { return l.p99 })),
			report.Milliseconds(medianOf(row.all, func(l latencies) time.Duration { return l.longest })),
		})
	}
	return table
}

func (r *Result) hostility() report.Table {
	table := report.Table{Title: fmt.Sprintf("A hostile policy beside %d good ones, its timeout %s", loaded, policyTimeout), Columns: []string{"policy", "ends by", "the request took"}}
	for _, each := range r.Hostile {
		if each.Rejected {
			table.Rows = append(table.Rows, []string{each.Name, "not compiling", ""})
			continue
		}
		table.Rows = append(table.Rows, []string{each.Name, string(each.Result), report.Milliseconds(each.Took)})
	}
	return table
}

// delay is how much longer the longest request takes while policies are exchanged, in the middle one of the rounds.
func (r *Result) delay() time.Duration {
	differences := make([]time.Duration, len(r.Still))
	for i := range r.Still {
		differences[i] = max(0, r.Exchanged[i].longest-r.Still[i].longest)
	}
	return medianDuration(differences)
}

func (r *Result) slowest() time.Duration {
	var slowest time.Duration
	for _, each := range r.Hostile {
		slowest = max(slowest, each.Took)
	}
	return slowest
}

func medianOf(all []latencies, of func(latencies) time.Duration) time.Duration {
	values := make([]time.Duration, len(all))
	for i, each := range all {
		values[i] = of(each)
	}
	return medianDuration(values)
}

func medianDuration(values []time.Duration) time.Duration {
	return time.Duration(statistics.Median(floats(values)))
}

func floats[T ~int64](values []T) []float64 {
	list := make([]float64, len(values))
	for i, value := range values {
		list[i] = float64(value)
	}
	return list
}
