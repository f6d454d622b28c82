package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Result is what a policy finds in an input: at most MaxMessages findings, sorted.
type Result struct {
	Deny, Warn []Finding
	// Truncated reports whether there were more findings, or a text was longer than MaxMessageBytes.
	Truncated bool
}

// Finding is one violation or warning that a policy returns for an input.
type Finding struct {
	Message string `json:"message"`
	// Field is the path of the field at fault, when the policy names it.
	Field string `json:"field,omitempty"`
	// Fix is what to do about it, when the policy returns that.
	Fix string `json:"fix,omitempty"`
}

// Text is the finding on one line: what is wrong, where, and what to do.
func (f Finding) Text() string {
	text := f.Message
	if f.Field != "" {
		text += " at " + f.Field
	}
	if f.Fix != "" {
		text += "; fix: " + f.Fix
	}
	return text
}

func compareFindings(a, b Finding) int {
	return strings.Compare(a.Message+"\x00"+a.Field+"\x00"+a.Fix, b.Message+"\x00"+b.Field+"\x00"+b.Fix)
}

// entryValues are the values of the entry rules that a policy has, nil for those that are undefined.
type entryValues [2]*ast.Term

// values returns the values of the entry rules.
func (p *Policy) values(found topdown.QueryResult) (values entryValues) {
	for i, entry := range p.program.entries {
		values[i] = found[ast.Var(entry)]
	}
	return values
}

// result reads the values of the entry rules.
func (p *Policy) result(values entryValues) (Result, error) {
	var (
		r    Result
		left = MaxMessages
	)
	for i, entry := range p.program.entries {
		term := values[i]
		if term == nil {
			continue
		}
		findings, cut, err := p.findings(entry, term.Value, left)
		if err != nil {
			return Result{}, err
		}
		left -= len(findings)
		r.Truncated = r.Truncated || cut
		if entry == entryDeny {
			r.Deny = findings
		} else {
			r.Warn = findings
		}
	}
	return r, nil
}

// findings reads the set of one entry rule, and returns at most left findings.
func (p *Policy) findings(entry string, value ast.Value, left int) (findings []Finding, cut bool, err error) {
	set, ok := value.(ast.Set)
	if !ok {
		return nil, false, p.wrong(entry, "%s is not a set", entry)
	}
	if set.Len() == 0 {
		return nil, false, nil
	}
	for _, term := range set.Slice() {
		if len(findings) == left {
			cut = true
			break
		}
		finding, shortened, err := p.finding(entry, term.Value)
		if err != nil {
			return nil, false, err
		}
		cut = cut || shortened
		findings = append(findings, finding)
	}
	slices.SortFunc(findings, compareFindings)
	return findings, cut, nil
}

func (p *Policy) finding(entry string, value ast.Value) (finding Finding, cut bool, err error) {
	text := func(value ast.Value) string {
		whole := string(value.(ast.String))
		short := shorten(whole, MaxMessageBytes)
		cut = cut || len(short) < len(whole)
		return short
	}
	switch v := value.(type) {
	case ast.String:
		return Finding{Message: text(v)}, cut, nil
	case ast.Object:
		wrong := v.Until(func(key, value *ast.Term) bool {
			name, isName := key.Value.(ast.String)
			_, isText := value.Value.(ast.String)
			switch {
			case !isName || !isText:
				return true
			case name == "msg":
				finding.Message = text(value.Value)
			case name == "field":
				finding.Field = text(value.Value)
			case name == "fix":
				finding.Fix = text(value.Value)
			default:
				return true
			}
			return false
		})
		if !wrong && v.Get(messageTerm) != nil {
			return finding, cut, nil
		}
	}
	return Finding{}, false, p.wrong(entry, "%s holds %s; its elements are texts, or objects with the texts msg, field and fix, of which msg is needed", entry, shorten(value.String(), 200))
}

var messageTerm = ast.StringTerm("msg")

func (p *Policy) wrong(entry, format string, arguments ...any) error {
	problem := p.program.source.problem(CodeResult, p.program.rows[entry], 1, format, arguments...)
	return &EvaluationError{Policy: p.definition.Name, Problem: problem}
}
