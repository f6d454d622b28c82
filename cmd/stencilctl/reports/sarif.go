package reports

import (
	"cmp"
	"path/filepath"
	"slices"
)

// Levels of results, as SARIF names them.
const (
	Error   = "error"
	Warning = "warning"
	Note    = "note"
)

// Rule is a kind of finding.
type Rule struct {
	ID, Text string
	// Level of its results unless they have another one.
	Level string
}

// Finding is one result. It is about a place in a file, an object or a part of one, or both.
type Finding struct {
	Rule, Level, Message string
	// File is empty for a finding about an object of a cluster.
	File string
	// Row and Column count from 1, Column in Unicode characters; 0 is unknown.
	Row, Column int
	// About is the object, or the path of the field.
	About string
}

// Sarif is a document of the Static Analysis Results Interchange Format 2.1.0, as far as it is used:
// https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html.
type Sarif struct {
	Schema  string `json:"$schema"`
	Version string `json:"version"`
	Runs    []run  `json:"runs"`
}

type (
	run struct {
		Tool       tool     `json:"tool"`
		ColumnKind string   `json:"columnKind"`
		Results    []result `json:"results"`
	}
	tool struct {
		Driver driver `json:"driver"`
	}
	driver struct {
		Name           string `json:"name"`
		InformationURI string `json:"informationUri"`
		Rules          []rule `json:"rules"`
	}
	rule struct {
		ID                   string        `json:"id"`
		ShortDescription     text          `json:"shortDescription"`
		DefaultConfiguration configuration `json:"defaultConfiguration"`
	}
	configuration struct {
		Level string `json:"level"`
	}
	result struct {
		RuleID    string     `json:"ruleId"`
		RuleIndex int        `json:"ruleIndex"`
		Level     string     `json:"level"`
		Message   text       `json:"message"`
		Locations []location `json:"locations"`
	}
	text struct {
		Text string `json:"text"`
	}
	location struct {
		Physical *physical `json:"physicalLocation,omitempty"`
		Logical  []logical `json:"logicalLocations,omitempty"`
	}
	physical struct {
		Artifact artifact `json:"artifactLocation"`
		Region   *region  `json:"region,omitempty"`
	}
	artifact struct {
		URI string `json:"uri"`
	}
	region struct {
		Row    int `json:"startLine"`
		Column int `json:"startColumn,omitempty"`
	}
	logical struct {
		Name string `json:"fullyQualifiedName"`
	}
)

// SARIF returns the document of findings. Rules that are not given and that a finding has are added without a text of their own.
func SARIF(rules []Rule, findings []Finding) *Sarif {
	rules = slices.Clone(rules)
	one := run{
		Tool:       tool{Driver: driver{Name: "stencilctl", InformationURI: "https://github.com/vmstencil/stencil"}},
		ColumnKind: "unicodeCodePoints",
		Results:    []result{},
	}
	for _, f := range findings {
		index := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == f.Rule })
		if index < 0 {
			index = len(rules)
			rules = append(rules, Rule{ID: f.Rule, Text: f.Rule, Level: f.Level})
		}
		at := location{}
		if f.File != "" {
			at.Physical = &physical{Artifact: artifact{URI: filepath.ToSlash(f.File)}}
			if f.Row > 0 {
				at.Physical.Region = &region{Row: f.Row, Column: f.Column}
			}
		}
		if f.About != "" {
			at.Logical = []logical{{Name: f.About}}
		}
		one.Results = append(one.Results, result{
			RuleID: f.Rule, RuleIndex: index, Level: cmp.Or(f.Level, rules[index].Level), Message: text{f.Message}, Locations: []location{at},
		})
	}
	one.Tool.Driver.Rules = make([]rule, len(rules))
	for i, r := range rules {
		one.Tool.Driver.Rules[i] = rule{ID: r.ID, ShortDescription: text{r.Text}, DefaultConfiguration: configuration{r.Level}}
	}
	return &Sarif{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []run{one}}
}
