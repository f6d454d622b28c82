package policy

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

func (t *testing) print(reports []report) error {
	switch {
	case t.format.Is(cli.JSON):
		return t.format.Write(t.streams.Out, reports)
	case t.format.Is(cli.JUnit):
		return t.junit(reports)
	default:
		t.table(reports)
		return nil
	}
}

// table writes reports as text.
func (t *testing) table(reports []report) {
	out := t.streams.Out
	var total report
	bad := 0
	for i := range reports {
		r := &reports[i]
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
	fmt.Fprintf(out, "%s: %s", cli.Count(len(reports), "policy", "policies"), total.counts())
	if bad > 0 {
		fmt.Fprintf(out, ", %s", t.streams.Paint(cli.Red, cli.Count(bad, "policy is not in order", "policies are not in order")))
	}
	fmt.Fprintln(out)
}

func (t *testing) line(r testResult) {
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

// The elements of JUnit's XML, as CI systems read it.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		File     string      `xml:"file,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr,omitempty"`
		Line    int           `xml:"line,attr,omitempty"`
		Time    string        `xml:"time,attr"`
		Failure *junitMessage `xml:"failure"`
		Error   *junitMessage `xml:"error"`
		Skipped *struct{}     `xml:"skipped"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

func (t *testing) junit(reports []report) error {
	var all junitSuites
	for i := range reports {
		s := t.junitSuite(&reports[i])
		all.Tests, all.Failures, all.Errors = all.Tests+s.Tests, all.Failures+s.Failures, all.Errors+s.Errors
		all.Suites = append(all.Suites, s)
	}
	raw, err := xml.MarshalIndent(all, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(t.streams.Out, "%s%s\n", xml.Header, raw)
	}
	return cli.Internal(err)
}

// junitSuite converts tests to cases. Each problem, and coverage that is too low, becomes a
// failing case.
func (t *testing) junitSuite(r *report) junitSuite {
	s := junitSuite{Name: r.Policy, File: r.File, Skipped: r.Skipped}
	var took time.Duration
	for _, each := range r.Tests {
		took += each.duration
		c := junitCase{Name: each.Name, Class: r.Policy, File: each.File, Line: each.Row, Time: seconds(each.duration)}
		switch each.Outcome {
		case testFailed:
			c.Failure = message(each.Failure)
		case testSkipped:
			c.Skipped = &struct{}{}
		}
		s.Cases = append(s.Cases, c)
	}
	for _, p := range r.Problems {
		s.Cases = append(s.Cases, junitCase{Name: "compiles", Class: r.Policy, File: p.File, Line: p.Row, Time: seconds(0), Error: message(p.String())})
	}
	if r.Coverage != nil && r.Coverage.TooLow {
		s.Cases = append(s.Cases, junitCase{
			Name: "coverage", Class: r.Policy, File: r.File, Time: seconds(0),
			Failure: message(fmt.Sprintf("%s %% are covered, less than %s %%; not evaluated: rows %s", percent(r.Coverage.Percent), percent(t.minimum), ranges(r.Coverage.NotCovered))),
		})
	}
	for _, c := range s.Cases {
		s.Tests++
		if c.Failure != nil {
			s.Failures++
		}
		if c.Error != nil {
			s.Errors++
		}
	}
	s.Time = seconds(took)
	return s
}

func message(text string) *junitMessage {
	first, _, _ := strings.Cut(text, "\n")
	return &junitMessage{Message: first, Text: text}
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 6, 64) }
