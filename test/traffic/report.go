package traffic

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Write is one write of the traffic.
type Write struct {
	// Began is when it was sent first, Took how long it took with all its retries.
	Began time.Time
	Took  time.Duration
	Kind  Kind
	User  string
	// Conflicts is how often it was sent again with a fresh read, because another writer was faster.
	Conflicts int
	Result    Result
}

// Report holds the results of the writes, in the order in which they ended.
type Report struct {
	Writes []Write
	// NotSent counts writes that were due while too many others had no answer yet.
	NotSent int
}

// Count returns the number of writes of a class.
func (r Report) Count(class Class) int {
	n := 0
	for i := range r.Writes {
		if r.Writes[i].Result.Class == class {
			n++
		}
	}
	return n
}

// DeniedBy returns the number of writes denied by a webhook or a policy with a name that contains one of the parts.
func (r Report) DeniedBy(parts ...string) int {
	return r.denied(func(by string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(by, part) })
	})
}

// DeniedByStencil returns the number of writes that a webhook or a policy of Stencil denied: its policies carry the name of the release,
// which contains stencil, and its webhooks one of its API groups.
func (r Report) DeniedByStencil() int {
	return r.denied(func(by string) bool {
		return strings.Contains(by, "stencil") || strings.HasSuffix(by, ".template.kubevirt.io")
	})
}

func (r Report) denied(match func(by string) bool) int {
	n := 0
	for i := range r.Writes {
		if result := &r.Writes[i].Result; result.Class == Denied && match(result.By) {
			n++
		}
	}
	return n
}

// Of returns the part of the report about some kinds of writes.
func (r Report) Of(kinds ...Kind) Report {
	return r.filter(func(write *Write) bool { return slices.Contains(kinds, write.Kind) })
}

// Between returns the part of the report about the writes that began in a period.
func (r Report) Between(from, to time.Time) Report {
	return r.filter(func(write *Write) bool { return !write.Began.Before(from) && write.Began.Before(to) })
}

// filter retains writes. What was not sent has no kind and no time.
func (r Report) filter(keep func(*Write) bool) Report {
	var kept Report
	for i := range r.Writes {
		if keep(&r.Writes[i]) {
			kept.Writes = append(kept.Writes, r.Writes[i])
		}
	}
	return kept
}

// row is a line of the table.
type row struct {
	kind      Kind
	user      string
	counts    map[Class]int
	conflicts int
	slowest   time.Duration
}

// String prints a table of all writes by kind and user, and a line for each reason for which writes were not stored.
func (r Report) String() string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "write\tuser\twritten\tdenied\trejected\tunavailable\tconflicts\tslowest")
	for _, one := range r.rows() {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", one.kind, one.user, one.counts[Written], one.counts[Denied],
			one.counts[Rejected], one.counts[Unavailable], one.conflicts, one.slowest.Round(time.Millisecond))
	}
	// It writes to memory.
	_ = table.Flush()
	for _, line := range r.reasons() {
		fmt.Fprintln(&text, line)
	}
	if r.NotSent > 0 {
		fmt.Fprintf(&text, "not sent, because too many writes had no answer yet: %d\n", r.NotSent)
	}
	return text.String()
}

func (r Report) rows() []row {
	var rows []row
	for i := range r.Writes {
		write := &r.Writes[i]
		at := slices.IndexFunc(rows, func(one row) bool { return one.kind == write.Kind && one.user == write.User })
		if at < 0 {
			at = len(rows)
			rows = append(rows, row{kind: write.Kind, user: write.User, counts: map[Class]int{}})
		}
		rows[at].counts[write.Result.Class]++
		rows[at].conflicts += write.Conflicts
		rows[at].slowest = max(rows[at].slowest, write.Took)
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.user, b.user)) })
	return rows
}

// reasons lists why writes were not stored, each with its number and an example.
func (r Report) reasons() []string {
	numbers, examples := map[string]int{}, map[string]string{}
	for i := range r.Writes {
		result := &r.Writes[i].Result
		if result.Class == Written {
			continue
		}
		reason := string(result.Class) + ": " + result.Reason
		switch {
		case result.Class == Denied && result.Broken:
			reason = "denied because " + result.By + " could not be evaluated"
		case result.Class == Denied:
			reason = "denied by " + result.By
		}
		numbers[reason]++
		examples[reason] = result.Message
	}
	lines := make([]string, 0, len(numbers))
	for reason, number := range numbers {
		lines = append(lines, fmt.Sprintf("%s: %d, such as: %s", reason, number, examples[reason]))
	}
	slices.Sort(lines)
	return lines
}
