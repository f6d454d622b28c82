package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// summary is a run, ready to be printed and checked against the budgets.
type summary struct {
	results []result
	// seconds is how long all of it took, and stretch by how much budgets grow.
	seconds, stretch float64
	// budget of the suite; 0 is none.
	budget float64
	plan   *plan
	// again are problems with tests that were flaky before.
	again []string
}

// problems are the reasons for which the run has failed.
func (s summary) problems() []string {
	var problems []string
	for _, each := range s.results {
		if each.failed {
			problems = append(problems, each.folder+" failed")
		}
	}
	problems = append(problems, s.again...)
	if s.budget > 0 && s.seconds > s.budget*s.stretch {
		problems = append(problems, fmt.Sprintf("the suite took %.0f s, its budget in test/suites.yaml is %.0f s%s", s.seconds, s.budget, s.grown()))
	}
	return problems
}

// grown describes by how much budgets have grown; empty if they have not.
func (s summary) grown() string {
	if s.stretch < 1.05 {
		return ""
	}
	return fmt.Sprintf(" (times %.1f: other programs used the processors, or these are slow)", s.stretch)
}

// print writes the table: packages with the longest first, those without tests left out.
func (s summary) print(out io.Writer) {
	rows := slices.Clone(s.results)
	slices.SortStableFunc(rows, func(a, b result) int {
		switch {
		case a.seconds > b.seconds:
			return -1
		case a.seconds < b.seconds:
			return 1
		}
		return strings.Compare(a.folder, b.folder)
	})
	fmt.Fprintln(out, "\nseconds  budget  package")
	var short, cached int
	var shortSeconds float64
	for _, each := range rows {
		if each.empty {
			continue
		}
		note := ""
		switch {
		case each.cached:
			cached++
			continue
		case each.failed:
			note = " FAILED"
		case each.flaky:
			note = " FLAKY, failed and passed when repeated: " + strings.Join(each.broken, ", ") + "; see " + each.log
		case each.seconds < 2:
			short++
			shortSeconds += each.seconds
			continue
		case s.budget > 0 && each.seconds > s.plan.budget(each.folder)*s.stretch:
			note = " over its budget"
		}
		fmt.Fprintf(out, "%7.1f  %6.0f  %s%s\n", each.seconds, s.plan.budget(each.folder), each.folder, note)
	}
	if short > 0 {
		fmt.Fprintf(out, "%7.1f          %d packages under 2 s each\n", shortSeconds, short)
	}
	if cached > 0 {
		fmt.Fprintf(out, "                 %d packages answered from the cache: nothing that they test has changed\n", cached)
	}
	fmt.Fprintf(out, "%7.1f  %6.0f  in all%s\n", s.seconds, s.budget, s.grown())
}
