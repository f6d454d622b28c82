package rego

import (
	"cmp"
	"context"
	"maps"
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
	// Stopped is, in a rule that did not fire, the furthest expression that it reached and that was not true; nil if there is none.
	Stopped *Stop
}

// Stop is an expression that was not true.
type Stop struct {
	Row, Column int
	// Expression is its text, at most 200 bytes.
	Expression string
	// Helpers are the rules that the expression uses, in the order of the source; those of package data.lib come last.
	Helpers []HelperExplanation
}

// HelperExplanation is the result of a rule that an expression uses.
type HelperExplanation struct {
	// Name of the rule, such as large or data.lib.images.
	Name string
	// Row is where the rule begins, and Line the text of that row. They are 0 and empty in package data.lib, of which one HelperExplanation has all rules
	// of a name.
	Row  int
	Line string
	// Values are those that the rule returned, or the elements of its set, in Rego: at most maxHelperValues of at most 200 bytes. There is none if the
	// rule is undefined.
	Values []string
	// Stopped is, in a rule of the policy that returned nothing, the furthest expression that it reached and that was not true; nil if there is none.
	Stopped *Stop
}

const (
	maxHelperValues = 5
	// maxTraces and maxHelperDepth limit what an explanation contains. Calls beyond them are left out.
	maxTraces      = 2000
	maxHelperDepth = 8
)

// Explain evaluates like Evaluate, and returns which rules fired. It is many times slower.
func (p *Policy) Explain(ctx context.Context, in *Input) (Explanation, error) {
	tracer := &explainer{
		policy: p, written: p.expressions(), entries: map[*ast.Rule]*trace{}, cached: map[*ast.Rule]*trace{},
		queries: map[uint64]*trace{}, parts: map[uint64]*trace{},
	}
	for _, entry := range p.program.entries {
		for _, rule := range p.program.compiler.GetRules(policyPackage.Append(ast.StringTerm(entry))) {
			tracer.entries[rule] = &trace{rule: rule, entry: entry}
		}
	}
	found, err := p.run(ctx, in, tracer)
	if err != nil {
		return Explanation{}, err
	}
	result, err := p.result(p.values(found))
	if err != nil {
		return Explanation{}, err
	}
	explanation := Explanation{Result: result}
	for rule, t := range tracer.entries {
		one := RuleExplanation{Entry: t.entry, Row: rule.Location.Row, Line: p.program.source.line(rule.Location.Row), Fired: t.returned, Findings: t.findings}
		if one.Fired {
			slices.SortFunc(one.Findings, compareFindings)
			one.Findings = slices.Compact(one.Findings)
		} else {
			one.Stopped = tracer.stop(t, 0)
		}
		explanation.Rules = append(explanation.Rules, one)
	}
	slices.SortFunc(explanation.Rules, func(a, b RuleExplanation) int { return a.Row - b.Row })
	return explanation, nil
}

// place is the position of an expression, or a row of the head of a rule, which is evaluated after the body.
type place struct {
	row, column int
	head        bool
}

func (a place) compare(b place) int {
	if a.head != b.head {
		if a.head {
			return 1
		}
		return -1
	}
	return cmp.Or(a.row-b.row, a.column-b.column)
}

// use is a use of a rule in an expression.
type use struct {
	at   place
	rule *ast.Rule
}

// trace is what the evaluations of a rule did, of an entry rule or of a use.
type trace struct {
	rule *ast.Rule
	// entry is empty for helpers.
	entry string
	// furthest is where the expression is that is the last in the source of those that were evaluated. The order of evaluation is OPA's choice.
	furthest place
	// now is where the expression is that is evaluated.
	now      place
	returned bool
	findings []Finding
	values   []string
	uses     map[use]*trace
}

// explainer follows rules through an evaluation.
type explainer struct {
	policy  *Policy
	written expressions
	entries map[*ast.Rule]*trace
	// cached are the first uses of rules without arguments: OPA evaluates these once.
	cached map[*ast.Rule]*trace
	// queries are by the number of the query that evaluates a rule, parts by that of a query inside of it, such as a comprehension.
	queries, parts map[uint64]*trace
	count          int
}

// Enabled is part of topdown.QueryTracer.
func (*explainer) Enabled() bool { return true }

// Config is part of topdown.QueryTracer.
func (*explainer) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent is part of topdown.QueryTracer.
func (e *explainer) TraceEvent(event topdown.Event) {
	switch node := event.Node.(type) {
	case *ast.Rule:
		switch event.Op {
		case topdown.EnterOp:
			if t := e.enter(node, event.ParentID); t != nil {
				e.queries[event.QueryID] = t
			}
		case topdown.ExitOp:
			if t := e.queries[event.QueryID]; t != nil {
				e.exit(t, event)
			}
		}
	case ast.Body:
		if user := e.user(event.ParentID); event.Op == topdown.EnterOp && user != nil {
			e.parts[event.QueryID] = user
		}
	case *ast.Expr:
		t := e.queries[event.QueryID]
		if t == nil || event.Op != topdown.EvalOp || node.Location == nil {
			return
		}
		t.now = e.written.locate(node.Location)
		if t.now.compare(t.furthest) > 0 {
			t.furthest = t.now
		}
	}
}

// user returns the trace of the rule that a query is, or is part of.
func (e *explainer) user(query uint64) *trace { return cmp.Or(e.queries[query], e.parts[query]) }

// enter returns the trace of a rule that a query uses, nil if it is left out.
func (e *explainer) enter(rule *ast.Rule, query uint64) *trace {
	if t := e.entries[rule]; t != nil {
		return t
	}
	user := e.user(query)
	if user == nil {
		return nil
	}
	this := use{user.now, rule}
	if t := user.uses[this]; t != nil {
		return t
	}
	if e.count++; e.count > maxTraces {
		return nil
	}
	t := &trace{rule: rule}
	if user.uses == nil {
		user.uses = map[use]*trace{}
	}
	user.uses[this] = t
	if len(rule.Head.Args) == 0 && e.cached[rule] == nil {
		e.cached[rule] = t
	}
	return t
}

func (e *explainer) exit(t *trace, event topdown.Event) {
	t.returned = true
	head := t.rule.Head
	if t.entry != "" {
		if len(t.findings) < MaxMessages {
			if finding, _, err := e.policy.finding(t.entry, event.Plug(head.Key).Value); err == nil {
				t.findings = append(t.findings, finding)
			}
		}
		return
	}
	if len(t.values) == maxHelperValues {
		return
	}
	value := head.Value
	if value == nil {
		value = head.Key
	}
	text := shorten(event.Plug(value).String(), 200)
	if !slices.Contains(t.values, text) {
		t.values = append(t.values, text)
	}
}

// stop returns where a rule stopped.
func (e *explainer) stop(t *trace, depth int) *Stop {
	if t.furthest == (place{}) {
		return nil
	}
	return &Stop{Row: t.furthest.row, Column: t.furthest.column, Expression: e.text(t.furthest), Helpers: e.helpers(t, depth+1)}
}

// helpers returns what the rules returned that the expression uses where a rule stopped.
func (e *explainer) helpers(t *trace, depth int) []HelperExplanation {
	if depth > maxHelperDepth {
		return nil
	}
	var own, common []HelperExplanation
	sets := map[string]bool{}
	for _, rule := range e.used(t) {
		called := t.uses[use{t.furthest, rule}]
		if called == nil {
			called = e.cached[rule]
		}
		if called == nil {
			continue
		}
		name := strings.TrimPrefix(rule.Ref().String(), policyPackage.String()+".")
		sets[name] = rule.Head.RuleKind() == ast.MultiValue
		if rule.Location.File != sourceFile {
			if i := slices.IndexFunc(common, func(h HelperExplanation) bool { return h.Name == name }); i >= 0 {
				common[i].Values = append(common[i].Values, called.values...)
				common[i].Values = common[i].Values[:min(len(common[i].Values), maxHelperValues)]
				continue
			}
			common = append(common, HelperExplanation{Name: name, Values: slices.Clone(called.values)})
			continue
		}
		one := HelperExplanation{Name: name, Row: rule.Location.Row, Line: e.policy.program.source.line(rule.Location.Row), Values: called.values}
		if !called.returned {
			one.Stopped = e.stop(called, depth)
		}
		own = append(own, one)
	}
	all := slices.Concat(own, common)
	for i := range all {
		if len(all[i].Values) == 0 && sets[all[i].Name] {
			all[i].Values = []string{"set()"}
		}
	}
	return all
}

// used returns the rules that the expression uses where a rule stopped.
func (e *explainer) used(t *trace) []*ast.Rule {
	found := map[*ast.Rule]bool{}
	for _, expr := range t.rule.Body {
		if expr.Location == nil || e.written.locate(expr.Location) != t.furthest {
			continue
		}
		ast.WalkRefs(expr, func(ref ast.Ref) bool {
			for _, rule := range e.policy.program.compiler.GetRules(ref.GroundPrefix()) {
				found[rule] = true
			}
			return false
		})
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b *ast.Rule) int {
		return cmp.Or(strings.Compare(a.Location.File, b.Location.File), a.Location.Row-b.Location.Row, a.Location.Col-b.Location.Col)
	})
}

// expressions of the bodies in the source, in its order. OPA evaluates parts of them.
type expressions []expression

type expression struct {
	place
	lastRow int
	// text is the first row.
	text string
}

func (p *Policy) expressions() expressions {
	module, problems := p.program.source.parse(sourceFile, nil)
	if len(problems) > 0 {
		return nil
	}
	var found expressions
	for _, rule := range module.Rules {
		for ; rule != nil; rule = rule.Else {
			for _, expr := range rule.Body {
				// The expression true of a rule without a body has the rule's place.
				if expr.Location != nil && (expr.Location.Row != rule.Location.Row || expr.Location.Col != rule.Location.Col) {
					first, _, _ := strings.Cut(string(expr.Location.Text), "\n")
					found = append(found, expression{
						place:   place{row: expr.Location.Row, column: expr.Location.Col},
						lastRow: expr.Location.Row + strings.Count(string(expr.Location.Text), "\n"), text: shorten(first, 200),
					})
				}
			}
		}
	}
	return found
}

// locate returns where the expression of the source is that contains a part.
func (e expressions) locate(part *ast.Location) place {
	at := place{row: part.Row, column: part.Col}
	found := place{row: part.Row, column: 1, head: true}
	for i := range e {
		if at.compare(e[i].place) >= 0 && at.row <= e[i].lastRow {
			found = e[i].place
		}
	}
	return found
}

// text returns the first row of an expression; of what the head of a rule has, that row.
func (e *explainer) text(at place) string {
	if i := slices.IndexFunc(e.written, func(written expression) bool { return written.place == at }); i >= 0 {
		return e.written[i].text
	}
	return strings.TrimSpace(e.policy.program.source.line(at.row))
}
