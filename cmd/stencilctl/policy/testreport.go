package policy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/reports"
)

func (t *testCommand) print(found []report) error {
	switch {
	case t.format.Is(cli.JSON):
		return t.format.Write(t.streams.Out, found)
	case t.format.Is(cli.JUnit):
		return t.junit(found)
	case t.format.Is(cli.SARIF):
		return t.format.Write(t.streams.Out, t.sarif(found))
	default:
		t.table(found)
		return nil
	}
}

// table writes reports as text.
func (t *testCommand) table(found []report) {
	out := t.streams.Out
	var total report
	bad := 0
	for i := range found {
		r := &found[i]
		total.Passed, total.Failed, total.Skipped = total.Passed+r.Passed, total.Failed+r.Failed, total.Skipped+r.Skipped
		word := t.streams.Paint(cli.Green, "ok  ")
		if !r.good() {
			word = t.streams.Paint(cli.Red, "FAIL")
			bad++
		}
		fmt.Fprintf(out, "%s  %s  %s%s\n", word, t.streams.Paint(cli.Bold, r.Policy), r.counts(), r.Coverage)
		for _, each := range r.Tests {
			t.line(each)
		}
		printProblems(out, t.streams, r.Problems)
		if r.Coverage != nil && len(r.Coverage.NotCovered) > 0 {
			fmt.Fprintf(out, "      not evaluated: %s:%s\n", r.File, ranges(r.Coverage.NotCovered))
		}
		if r.Coverage != nil && r.Coverage.TooLow {
			fmt.Fprintf(out, "      less than %s %% is evaluated\n", percent(t.minimum))
		}
	}
	fmt.Fprintf(out, "%s: %s", cli.Count(len(found), "policy", "policies"), total.counts())
	if bad > 0 {
		fmt.Fprintf(out, ", %s", t.streams.Paint(cli.Red, cli.Count(bad, "policy is not in order", "policies are not in order")))
	}
	fmt.Fprintln(out)
}

func (t *testCommand) line(r testResult) {
	name := r.Name
	if r.File != "" {
		name = fmt.Sprintf("%s:%d: %s", r.File, r.Row, r.Name)
	}
	switch r.Outcome {
	case testFailed:
		fmt.Fprintf(t.streams.Out, "      %s %s\n", t.streams.Paint(cli.Red, "failed "), name)
		for _, line := range strings.Split(r.Failure, "\n") {
			fmt.Fprintf(t.streams.Out, "              %s\n", line)
		}
	case testSkipped:
		fmt.Fprintf(t.streams.Out, "      %s %s\n", t.streams.Paint(cli.Yellow, "skipped"), name)
	default:
		if t.verbose {
			fmt.Fprintf(t.streams.Out, "      %s %s\n", t.streams.Paint(cli.Green, "passed "), name)
		}
	}
}

func (r *report) counts() string {
	if r.Passed+r.Failed+r.Skipped == 0 {
		return "no tests"
	}
	text := fmt.Sprintf("%d passed", r.Passed)
	if r.Failed > 0 {
		text += fmt.Sprintf(", %d failed", r.Failed)
	}
	if r.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped", r.Skipped)
	}
	return text
}

// String returns the end of a line; empty without coverage.
func (c *coverage) String() string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf(", %s %% covered", percent(c.Percent))
}

func percent(value float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(value, 'f', 1, 64), ".0")
}

// ranges formats sorted rows as 3,7-9.
func ranges(rows []int) string {
	var parts []string
	for i := 0; i < len(rows); {
		last := i
		for last+1 < len(rows) && rows[last+1] == rows[last]+1 {
			last++
		}
		part := strconv.Itoa(rows[i])
		if last > i {
			part += "-" + strconv.Itoa(rows[last])
		}
		parts = append(parts, part)
		i = last + 1
	}
	return strings.Join(parts, ",")
}

func (t *testCommand) junit(found []report) error {
	var suites []reports.Suite
	for i := range found {
		suites = append(suites, t.junitSuite(&found[i]))
	}
	return cli.Internal(reports.WriteJUnit(t.streams.Out, suites))
}

// junitSuite converts tests to cases. Each problem, and coverage that is too low, becomes a failing case.
func (t *testCommand) junitSuite(r *report) reports.Suite {
	s := reports.Suite{Name: r.Policy, File: r.File}
	for _, each := range r.Tests {
		s.Cases = append(s.Cases, reports.Case{
			Name: each.Name, Class: r.Policy, File: each.File, Line: each.Row, Duration: each.duration,
			Failure: each.Failure, Skipped: each.Outcome == testSkipped,
		})
	}
	for _, p := range r.Problems {
		s.Cases = append(s.Cases, p.junit())
	}
	if r.Coverage != nil && r.Coverage.TooLow {
		s.Cases = append(s.Cases, reports.Case{Name: "coverage", Class: r.Policy, File: r.File, Failure: t.lowCoverage(r)})
	}
	return s
}

func (t *testCommand) lowCoverage(r *report) string {
	return fmt.Sprintf("%s %% are covered, less than %s %%; not evaluated: rows %s", percent(r.Coverage.Percent), percent(t.minimum), ranges(r.Coverage.NotCovered))
}

// sarif has the problems, the tests that failed, and coverage that is too low.
func (t *testCommand) sarif(found []report) *reports.Sarif {
	var all []reports.Finding
	for i := range found {
		r := &found[i]
		for _, p := range r.Problems {
			all = append(all, p.sarif())
		}
		for _, each := range r.Tests {
			if each.Outcome != testFailed {
				continue
			}
			f := reports.Finding{Rule: ruleTest, Level: reports.Error, Message: each.Name + ": " + each.Failure, File: each.File, Row: each.Row, About: r.Policy}
			if f.File == "" {
				f.File = r.File
			}
			all = append(all, f)
		}
		if r.Coverage != nil && r.Coverage.TooLow {
			all = append(all, reports.Finding{Rule: ruleCoverage, Level: reports.Error, Message: t.lowCoverage(r), File: r.File, About: r.Policy})
		}
	}
	return reports.SARIF(rules, all)
}
