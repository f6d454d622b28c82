package rego

import (
	"context"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Explanation is the result of a policy and how its rules contributed to it.
type Explanation struct {
	Result Result
	// Rules are the policy's entry rules, in the order of the source.
	Rules []RuleExplanation
}

// RuleExplanation is the result of one entry rule for an input.
type RuleExplanation struct {
	// Entry is deny or warn.
	Entry string
	// Row is where the rule begins, and Line the text of that row.
	Row  int
	Line string
	// Fired reports whether the rule returned Findings.
	Fired    bool
	Findings []Finding
	// StoppedRow, StoppedColumn and StoppedAt are, in a rule that did not fire, the
	// furthest expression that it reached and that was not true.
	StoppedRow, StoppedColumn int
	StoppedAt                 string
}

// Explain evaluates like Evaluate, and returns which rules fired. It is many times slower.
func (p *Policy) Explain(ctx context.Context, in *Input) (Explanation, error) {
	tracer := &explainer{policy: p, queries: map[uint64]*RuleExplanation{}}
	rules := map[*ast.Rule]*RuleExplanation{}
	for _, entry := range p.program.entries {
		for _, rule := range p.program.compiler.GetRules(policyPackage.Append(ast.StringTerm(entry))) {
			rules[rule] = &RuleExplanation{Entry: entry, Row: rule.Location.Row, Line: p.program.source.line(rule.Location.Row)}
		}
	}
	tracer.rules = rules
	found, err := p.run(ctx, in, tracer)
	if err != nil {
		return Explanation{}, err
	}
	result, err := p.result(p.values(found))
	if err != nil {
		return Explanation{}, err
	}
	explanation := Explanation{Result: result}
	written := p.expressions()
	for _, rule := range rules {
		if !rule.Fired {
			written.locate(rule)
		} else {
			rule.StoppedRow, rule.StoppedColumn, rule.StoppedAt = 0, 0, ""
			slices.SortFunc(rule.Findings, compareFindings)
			rule.Findings = slices.Compact(rule.Findings)
		}
		explanation.Rules = append(explanation.Rules, *rule)
	}
	slices.SortFunc(explanation.Rules, func(a, b RuleExplanation) int { return a.Row - b.Row })
	return explanation, nil
}

// explainer follows the entry rules through an evaluation.
type explainer struct {
	policy  *Policy
	rules   map[*ast.Rule]*RuleExplanation
	queries map[uint64]*RuleExplanation // by the number of the query that evaluates the rule
}

// Enabled is part of topdown.QueryTracer.
func (*explainer) Enabled() bool { return true }

// Config is part of topdown.QueryTracer.
func (*explainer) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent is part of topdown.QueryTracer.
func (e *explainer) TraceEvent(event topdown.Event) {
	switch node := event.Node.(type) {
	case *ast.Rule:
		rule := e.rules[node]
		if rule == nil {
			return
		}
		switch event.Op {
		case topdown.EnterOp:
			e.queries[event.QueryID] = rule
		case topdown.ExitOp:
			rule.Fired = true
			if len(rule.Findings) < MaxMessages {
				value := event.Plug(node.Head.Key)
				if finding, _, err := e.policy.finding(rule.Entry, value.Value); err == nil {
					rule.Findings = append(rule.Findings, finding)
				}
			}
		}
	case *ast.Expr:
		rule := e.queries[event.QueryID]
		if rule == nil || event.Op != topdown.EvalOp || node.Location == nil {
			return
		}
		// The furthest expression is the last in the source. The order of evaluation is OPA's choice.
		row, column := node.Location.Row, node.Location.Col
		if row > rule.StoppedRow || row == rule.StoppedRow && column >= rule.StoppedColumn {
			rule.StoppedRow, rule.StoppedColumn = row, column
			rule.StoppedAt = shorten(string(node.Location.Text), 200)
		}
	}
}

// expressions are the locations of the expressions in the source. OPA evaluates parts of them.
type expressions []*ast.Location

func (p *Policy) expressions() expressions {
	module, problems := p.program.source.parse(sourceFile, nil)
	if len(problems) > 0 {
		return nil
	}
	var found expressions
	for _, rule := range module.Rules {
		for _, expr := range rule.Body {
			if expr.Location != nil {
				found = append(found, expr.Location)
			}
		}
	}
	return found
}

// locate replaces the place where a rule stopped by the source expression that contains it.
func (e expressions) locate(rule *RuleExplanation) {
	for _, location := range e {
		rows := strings.Count(string(location.Text), "\n")
		after := rule.StoppedRow > location.Row || rule.StoppedRow == location.Row && rule.StoppedColumn >= location.Col
		if after && rule.StoppedRow <= location.Row+rows {
			first, _, _ := strings.Cut(string(location.Text), "\n")
			rule.StoppedRow, rule.StoppedColumn, rule.StoppedAt = location.Row, location.Col, shorten(first, 200)
		}
	}
}
