package lint

import (
	"fmt"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/reports"
	templatelint "github.com/vmstencil/stencil/template/lint"
)

func (l *linting) print(found *report) error {
	switch {
	case l.format.Is(cli.JSON):
		return l.format.Write(l.streams.Out, found)
	case l.format.Is(cli.SARIF):
		return l.format.Write(l.streams.Out, sarifOf(found))
	}
	counts := map[templatelint.Severity]int{}
	for i := range found.Findings {
		f := &found.Findings[i]
		counts[f.Severity]++
		fmt.Fprintf(l.streams.Out, "%s: %s: %s %s\n",
			l.streams.Paint(cli.Bold, fmt.Sprintf("%s:%d:%d", f.File, f.Row, f.Column)),
			l.streams.Paint(styles[f.Severity], string(f.Severity)), f.text(), l.streams.Paint(cli.Faint, "["+f.Rule+"]"))
	}
	fmt.Fprintf(l.streams.Out, "%s: %s, %s, %s\n", cli.Count(found.Templates, "template", "templates"),
		cli.Count(counts[templatelint.Error], "error", "errors"), cli.Count(counts[templatelint.Warning], "warning", "warnings"),
		cli.Count(counts[templatelint.Advice], "piece of advice", "pieces of advice"))
	return nil
}

var styles = map[templatelint.Severity]cli.Style{
	templatelint.Error: cli.Red, templatelint.Warning: cli.Yellow, templatelint.Advice: cli.Cyan,
}

// text returns the finding with its path in the template.
func (f *placed) text() string {
	if f.Path == "" {
		return f.Message
	}
	return f.Path + ": " + f.Message
}

// levels maps severities to the levels of reports.
var levels = map[templatelint.Severity]string{
	templatelint.Error: reports.Error, templatelint.Warning: reports.Warning, templatelint.Advice: reports.Note,
}

func sarifOf(found *report) *reports.Sarif {
	var rules []reports.Rule
	for _, rule := range templatelint.Rules() {
		rules = append(rules, reports.Rule{ID: rule.ID, Text: rule.Text, Level: levels[rule.Severity]})
	}
	var findings []reports.Finding
	for i := range found.Findings {
		f := &found.Findings[i]
		findings = append(findings, reports.Finding{Rule: f.Rule, Level: levels[f.Severity], Message: f.text(), File: f.File, Row: f.Row, Column: f.Column, About: f.Path})
	}
	return reports.SARIF(rules, findings)
}
