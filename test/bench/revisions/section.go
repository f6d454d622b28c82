package revisions

import (
	"fmt"
	"time"

	"github.com/vmstencil/stencil/test/bench/report"
)

// The project's targets.
const (
	wantedRatio  = 1.2
	wantedMemory = 150 << 20
)

// Section reports the result.
func (r *Result) Section(context string) report.Section {
	count := fmt.Sprintf("%d stored copies", r.options.Revisions)
	beside := func(what string, c cost) report.Target {
		ratio := r.migration.time.Seconds() / c.time.Seconds()
		return report.Target{What: what, Wanted: "≤ 1.2", Measured: fmt.Sprintf("%.2f", ratio), Met: ratio <= wantedRatio}
	}
	// processor is the processor time for one copy.
	processor := func(c cost, names ...string) string {
		var used time.Duration
		for _, name := range names {
			used += c.processor[name]
		}
		return fmt.Sprintf("%.2f ms", used.Seconds()*1e3/float64(r.options.Revisions))
	}
	row := func(what string, c cost) []string {
		return []string{what, report.Seconds(c.time), fmt.Sprintf("%.2f", c.time.Seconds()/r.bare.time.Seconds()), fmt.Sprintf("%.2f", c.time.Seconds()/r.equal.time.Seconds()),
			processor(c, client, manages), processor(c, serves), processor(c, stores), processor(c, client, manages, serves, stores)}
	}
	return report.Section{
		Name:    "revisions",
		Context: fmt.Sprintf("%s; %s", context, count),
		Tables: []report.Table{{
			Title:   "stencil-manager migrating stored instance types",
			Columns: []string{"what", "time", "beside plain", "beside equal", "client", "kube-apiserver", "etcd", "together"},
			Rows: [][]string{
				row("a client with 8 workers, for each copy: create, delete, create", r.bare),
				row("the same, with objects like those of the manager", r.equal),
				row("the manager, from the change of the mode to the condition Complete", r.migration),
			},
		}, {
			Title:   "stencil-manager's memory",
			Columns: []string{"what", "measured"},
			Rows: [][]string{
				{"resident after that (VmRSS)", report.MiB(r.memory.Resident)},
				{"largest ever (VmHWM)", report.MiB(r.memory.Peak)},
			},
		}},
		Targets: []report.Target{
			beside("time beside the client", r.bare),
			beside("time beside the client with the same objects", r.equal),
			{What: "memory (VmHWM)", Wanted: "≤ 150 MiB", Measured: report.MiB(r.memory.Peak), Met: r.memory.Peak <= wantedMemory},
		},
		Notes: []string{
			"The last four columns are processor time for one copy, of the client or the manager, and of the servers, which share the machine's cores. Other load on the machine changes it less than the time.",
			"The manager also lists all copies before, and proves each conversion. It writes as a service account that it impersonates, so that RBAC authorizes each request twice, and the policy manager-revisions checks it; the client is a member of system:masters, whose requests RBAC does not see. Every ten seconds it creates one copy in a dry run.",
		},
	}
}
