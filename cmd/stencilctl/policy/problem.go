package policy

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/reports"
	policyspec "github.com/vmstencil/stencil/policies/spec"
	"github.com/vmstencil/stencil/rego"
)

// problem is a problem in a file. Its JSON form is output.
type problem struct {
	File   string `json:"file"`
	Policy string `json:"policy,omitempty"`
	// Row and Column are in the file, counted from 1; 0 when the problem has no position.
	Row    int `json:"row,omitempty"`
	Column int `json:"column,omitempty"`
	// Line is the text of the row, without the indentation of the manifest.
	Line string `json:"line,omitempty"`
	// Field is a field of the manifest.
	Field   string `json:"field,omitempty"`
	Code    string `json:"code"`
	Message string `json:"message"`

	// caret is the column in Line.
	caret int
	// unplaced means that Row and Column are positions in the module, not in the file.
	unplaced bool
}

// codeManifest is the code of problems that are not about the module.
const codeManifest = "manifest"

// locator is a module in a file.
type locator interface {
	Locate(row, column int) (fileRow, fileColumn int, known bool)
}

// place converts a problem that the engine found in a module.
func place(file, policy string, in locator, p rego.Problem) problem {
	found := problem{File: file, Policy: policy, Code: p.Code, Message: p.Message, Line: p.Line, Field: p.Field, caret: p.Column}
	if p.Row == 0 {
		return found
	}
	row, column, known := in.Locate(p.Row, p.Column)
	found.Row, found.Column = row, column
	if !known {
		found.Row, found.Column, found.unplaced = p.Row, p.Column, true
	}
	return found
}

// problemsOf returns the problems in an error about a module, or none for any other error.
func problemsOf(file, policy string, in locator, err error) []problem {
	var found []problem
	var compile *rego.CompileError
	if errors.As(err, &compile) {
		for _, each := range compile.Problems {
			found = append(found, place(file, policy, in, each))
		}
	}
	return found
}

// parseProblems converts the errors of OPA's parser.
func parseProblems(file, policy, source string, in locator, err error) []problem {
	var errs ast.Errors
	if !errors.As(err, &errs) {
		return []problem{{File: file, Policy: policy, Code: rego.CodeParse, Message: err.Error()}}
	}
	var found []problem
	lines := strings.Split(source, "\n")
	for _, each := range errs {
		p := rego.Problem{Code: rego.CodeParse, Message: each.Message}
		if each.Location != nil && each.Location.Row > 0 {
			p.Row, p.Column = each.Location.Row, each.Location.Col
			if p.Row <= len(lines) {
				p.Line = lines[p.Row-1]
			}
		}
		found = append(found, place(file, policy, in, p))
	}
	return found
}

func manifestProblems(file, policy string, errs field.ErrorList) []problem {
	var found []problem
	for _, each := range errs {
		p := problem{File: file, Policy: policy, Field: each.Field, Code: codeManifest, Message: each.ErrorBody()}
		if p.Field == "" || p.Field == "<nil>" {
			p.Field, p.Message = "", each.Detail // Detail contains the field
		}
		found = append(found, p)
	}
	return found
}

// String returns the position and the message on one line.
func (p problem) String() string {
	at := p.File
	switch {
	case p.unplaced:
		at += fmt.Sprintf(" (policy %s, module %d:%d)", p.Policy, p.Row, p.Column)
	case p.Row > 0:
		at += fmt.Sprintf(":%d:%d", p.Row, p.Column)
	case p.Policy != "":
		at += " (policy " + p.Policy + ")"
	}
	if p.Field != "" && p.Row == 0 {
		at += ": " + p.Field
	}
	return at + ": " + p.Message
}

// printProblems writes problems with the lines that they are about.
func printProblems(w io.Writer, streams cli.Streams, problems []problem) {
	for _, p := range problems {
		text := p.String()
		at, _ := strings.CutSuffix(text, p.Message)
		fmt.Fprintf(w, "%s%s %s\n", streams.Paint(cli.Bold, at), p.Message, streams.Paint(cli.Faint, "["+p.Code+"]"))
		if p.Row == 0 || p.Line == "" {
			continue
		}
		number := fmt.Sprintf("%5d | ", p.Row)
		fmt.Fprintf(w, "%s%s\n", streams.Paint(cli.Faint, number), p.Line)
		fmt.Fprintf(w, "%s%s%s\n", streams.Paint(cli.Faint, strings.Repeat(" ", len(number)-2)+"| "), indentation(p.Line, p.caret), streams.Paint(cli.Red, "^"))
	}
}

// indentation returns whitespace as wide as the line before a column, which counts bytes from
// 1.
func indentation(line string, column int) string {
	before := line[:min(max(column-1, 0), len(line))]
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, before)
}

// junit returns the problem as a test that could not run.
func (p problem) junit() reports.Case {
	c := reports.Case{Name: "compiles", Class: p.Policy, File: p.File, Error: p.String()}
	if !p.unplaced {
		c.Line = p.Row
	}
	return c
}

// rules are the codes of problems, and what else test finds, with their descriptions.
var rules = []reports.Rule{
	{ID: codeManifest, Text: "The manifest is invalid.", Level: reports.Error},
	{ID: rego.CodeParse, Text: "The module is not valid Rego.", Level: reports.Error},
	{ID: rego.CodeLimit, Text: "The module exceeds a limit.", Level: reports.Error},
	{ID: rego.CodeEntry, Text: "An entry rule is missing or has the wrong form.", Level: reports.Error},
	{ID: rego.CodeReference, Text: "The module refers to data that policies cannot read.", Level: reports.Error},
	{ID: rego.CodeBuiltin, Text: "The module calls a function that is not available to policies.", Level: reports.Error},
	{ID: rego.CodeType, Text: "A value has a wrong type, or a field does not exist.", Level: reports.Error},
	{ID: rego.CodeCompile, Text: "The module does not compile.", Level: reports.Error},
	{ID: rego.CodeMetadata, Text: "An annotation is invalid.", Level: reports.Error},
	{ID: rego.CodeSchema, Text: "The schema of the parameters is invalid.", Level: reports.Error},
	{ID: rego.CodeParameters, Text: "The parameters do not satisfy their schema.", Level: reports.Error},
	{ID: policyspec.CodeUnreached, Text: "A rule or a test is about requests that the policy does not evaluate.", Level: reports.Error},
	{ID: ruleTest, Text: "A test of the policy failed.", Level: reports.Error},
	{ID: ruleCoverage, Text: "The tests evaluate too little of the policy.", Level: reports.Error},
}

const ruleTest, ruleCoverage = "test", "coverage"

// sarif returns the problem as a finding. Its column counts characters.
func (p problem) sarif() reports.Finding {
	f := reports.Finding{Rule: p.Code, Level: reports.Error, Message: p.Message, File: p.File, Row: p.Row, Column: p.Column, About: p.Field}
	if before := p.Line[:min(max(p.caret-1, 0), len(p.Line))]; f.Column > 0 {
		f.Column -= len(before) - utf8.RuneCountInString(before)
	}
	if p.unplaced {
		f.Row, f.Column, f.Message = 0, 0, p.String()
	}
	return f
}
