package lint

import (
	"fmt"
	"path/filepath"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
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

// The parts of the Static Analysis Results Interchange Format (SARIF) 2.1.0 that are
// used, https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html.
type (
	sarif struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID                   string           `json:"id"`
		ShortDescription     sarifText        `json:"shortDescription"`
		DefaultConfiguration sarifRuleDefault `json:"defaultConfiguration"`
	}
	sarifRuleDefault struct {
		Level string `json:"level"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		Row    int `json:"startLine"`
		Column int `json:"startColumn"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
	}
)

// levels maps severities to SARIF levels.
var levels = map[templatelint.Severity]string{
	templatelint.Error: "error", templatelint.Warning: "warning", templatelint.Advice: "note",
}

func sarifOf(found *report) *sarif {
	run := sarifRun{
		Tool:       sarifTool{Driver: sarifDriver{Name: "stencilctl", InformationURI: "https://github.com/vmstencil/stencil"}},
		ColumnKind: "unicodeCodePoints",
		Results:    []sarifResult{},
	}
	index := map[string]int{}
	for i, rule := range templatelint.Rules() {
		index[rule.ID] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID: rule.ID, ShortDescription: sarifText{rule.Text}, DefaultConfiguration: sarifRuleDefault{levels[rule.Severity]},
		})
	}
	for i := range found.Findings {
		f := &found.Findings[i]
		location := sarifLocation{Physical: sarifPhysical{
			Artifact: sarifArtifact{URI: filepath.ToSlash(f.File)}, Region: sarifRegion{Row: f.Row, Column: f.Column},
		}}
		if f.Path != "" {
			location.Logical = []sarifLogical{{Name: f.Path}}
		}
		run.Results = append(run.Results, sarifResult{
			RuleID: f.Rule, RuleIndex: index[f.Rule], Level: levels[f.Severity],
			Message: sarifText{f.text()}, Locations: []sarifLocation{location},
		})
	}
	return &sarif{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}
}
