package fastpath

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/vmstencil/stencil/rego/internal/sandbox"
)

// The names of data.parameters and data.cluster.
var parameters, cluster = ast.String("parameters"), ast.String("cluster")

// New compiles the rules of a policy. Entries are the refs of the rules that the policy is evaluated for. It returns nil if all inputs
// would need OPA.
func New(compiler *ast.Compiler, functions map[string]*topdown.Builtin, entries []ast.Ref) *Program {
	t := &translator{compiler: compiler, builtins: functions, documents: map[string]*document{}, functions: map[string]*function{}}
	for _, ref := range entries {
		entry := t.document(ref)
		if entry == nil || entry.unknown || !entry.set {
			return nil
		}
		for _, c := range entry.clauses {
			if c.body.startsUnknown() {
				return nil
			}
		}
		t.program.entries = append(t.program.entries, entry)
	}
	return &t.program
}

// startsUnknown reports whether the body cannot be decided for any input.
func (b *body) startsUnknown() bool {
	return len(b.steps) > 0 && b.steps[0].kind == stepUnknown
}

type translator struct {
	program   Program
	compiler  *ast.Compiler
	builtins  map[string]*topdown.Builtin
	documents map[string]*document
	functions map[string]*function
}

// rules returns the definitions of a rule, or nil if there are also definitions of parts of it.
func (t *translator) rules(ref ast.Ref) []*ast.Rule {
	node := t.compiler.RuleTree.Find(ref)
	if node == nil || len(node.Children) > 0 {
		return nil
	}
	return node.Values
}

// document returns the rule without arguments that a ref of three parts names, nil if it is none.
func (t *translator) document(ref ast.Ref) *document {
	key := ref.String()
	if known, ok := t.documents[key]; ok {
		return known
	}
	rules := t.rules(ref)
	if rules == nil {
		d := t.object(ref)
		t.documents[key] = d
		return d
	}
	if len(rules) == 0 || len(rules[0].Head.Args) > 0 {
		t.documents[key] = nil
		return nil
	}
	name, _ := ref[2].Value.(ast.String)
	inLib := ref[1].Value.Compare(sandbox.LibTerm.Value) == 0
	d := &document{index: t.program.documents, name: name, inLib: inLib, helper: inLib && !isValue(rules)}
	t.program.documents++
	t.documents[key] = d
	if d.helper {
		return d // its value is shared by all policies of the request
	}
	d.set = rules[0].Head.RuleKind() == ast.MultiValue
	for _, rule := range rules {
		switch {
		case len(rule.Head.Ref()) != 1 && len(rule.Head.Ref()) != 3 || !rule.Head.Ref().IsGround(),
			(rule.Head.RuleKind() == ast.MultiValue) != d.set,
			!d.set && rule.Head.Key != nil:
			d.unknown = true
		case rule.Default:
			d.initial = rule.Head.Value
			d.unknown = d.unknown || !isConstant(rule.Head.Value)
		case d.set:
			d.clauses = append(d.clauses, t.clause(rule, endSet))
		default:
			d.clauses = append(d.clauses, t.clause(rule, endValue))
		}
	}
	return d
}

// object returns a rule of the policy that is defined by constant keys, as in fields["name"] := 1; nil if it is none.
func (t *translator) object(ref ast.Ref) *document {
	node := t.compiler.RuleTree.Find(ref)
	name, _ := ref[2].Value.(ast.String)
	if node == nil || len(node.Values) > 0 || ref[1].Value.Compare(sandbox.PolicyTerm.Value) != 0 {
		return nil
	}
	d := &document{index: t.program.documents, name: name}
	t.program.documents++
	for key, child := range node.Children {
		if len(child.Children) > 0 || len(child.Values) == 0 {
			return nil
		}
		f := field{key: ast.NewTerm(key)}
		for _, rule := range child.Values {
			if rule.Default || rule.Head.RuleKind() != ast.SingleValue || len(rule.Head.Args) > 0 || !rule.Head.Ref().IsGround() {
				return nil
			}
			f.clauses = append(f.clauses, t.clause(rule, endValue))
		}
		d.fields = append(d.fields, f)
	}
	slices.SortFunc(d.fields, func(a, b field) int { return a.key.Value.Compare(b.key.Value) })
	return d
}

// isValue reports whether a rule is a constant.
func isValue(rules []*ast.Rule) bool {
	only := rules[0]
	return len(rules) == 1 && only.Head.RuleKind() == ast.SingleValue && only.Else == nil && isConstant(only.Head.Value) &&
		len(only.Body) == 1 && only.Body[0].Equal(always)
}

// always is the body of a rule without one.
var always = ast.NewExpr(ast.BooleanTerm(true))

// function returns the function of a policy or of data.lib.
func (t *translator) function(ref ast.Ref) *function {
	key := ref.String()
	if known, ok := t.functions[key]; ok {
		return known
	}
	f := &function{}
	t.functions[key] = f
	for _, rule := range t.rules(ref) {
		if rule.Default || rule.Head.RuleKind() == ast.MultiValue || len(rule.Head.Args) == 0 {
			f.unknown = true
			continue
		}
		f.clauses = append(f.clauses, t.clause(rule, endValue))
	}
	f.unknown = f.unknown || len(f.clauses) == 0
	return f
}

func (t *translator) clause(rule *ast.Rule, end endKind) *clause {
	s := &scope{translator: t, slots: map[ast.Var]int{}}
	bound := ast.NewVarSet()
	c := &clause{}
	understood := true
	for _, arg := range rule.Head.Args {
		p, ok := s.pattern(arg, bound)
		c.args, understood = append(c.args, p), understood && ok
	}
	head := rule.Head.Value
	if end == endSet {
		head = rule.Head.Key
	}
	c.body = s.body(rule.Body, bound, end, head, nil)
	if !understood {
		c.body.steps = []step{{kind: stepUnknown}}
	}
	c.slots = s.next
	if rule.Else != nil {
		c.otherwise = t.clause(rule.Else, end)
	}
	return c
}

// scope is the variables of one clause. OPA's compiler gives each a name of its own, also those of comprehensions.
type scope struct {
	*translator
	slots map[ast.Var]int
	next  int
}

func (s *scope) slot(v ast.Var) int {
	if slot, ok := s.slots[v]; ok {
		return slot
	}
	s.slots[v] = s.next
	s.next++
	return s.next - 1
}

func (s *scope) body(exprs ast.Body, bound ast.VarSet, end endKind, out, key *ast.Term) *body {
	b := &body{end: end}
	for _, expr := range exprs {
		b.steps = append(b.steps, s.expr(expr, bound)...)
	}
	ok := true
	if out != nil {
		b.out, ok = s.operand(out, bound)
	}
	if key != nil && ok {
		b.key, ok = s.operand(key, bound)
	}
	if !ok {
		b.steps = append(b.steps, step{kind: stepUnknown})
	}
	return b
}

// operand translates a term all variables of which are bound.
func (s *scope) operand(term *ast.Term, bound ast.VarSet) (operand, bool) {
	if isConstant(term) {
		return operand{kind: operandConstant, term: term}, true
	}
	switch value := term.Value.(type) {
	case ast.Var:
		if !bound.Contains(value) {
			return operand{}, false
		}
		return operand{kind: operandVariable, slot: s.slot(value)}, true
	case *ast.Array:
		parts, ok := s.operands(elements(value), bound)
		return operand{kind: operandArray, parts: parts}, ok
	case ast.Set:
		parts, ok := s.operands(value.Slice(), bound)
		return operand{kind: operandSet, parts: parts}, ok
	case ast.Object:
		var terms []*ast.Term
		value.Foreach(func(key, value *ast.Term) { terms = append(terms, key, value) })
		parts, ok := s.operands(terms, bound)
		return operand{kind: operandObject, parts: parts}, ok
	}
	return operand{}, false
}

func (s *scope) operands(terms []*ast.Term, bound ast.VarSet) ([]operand, bool) {
	parts := make([]operand, len(terms))
	for i, term := range terms {
		var ok bool
		if parts[i], ok = s.operand(term, bound); !ok {
			return nil, false
		}
	}
	return parts, true
}

// pattern translates a term with variables that it binds.
func (s *scope) pattern(term *ast.Term, bound ast.VarSet) (pattern, bool) {
	if v, ok := term.Value.(ast.Var); ok && !bound.Contains(v) {
		if isRoot(v) {
			return pattern{}, false
		}
		bound.Add(v)
		return pattern{kind: patternBind, slot: s.slot(v)}, true
	}
	if o, ok := s.operand(term, bound); ok {
		return pattern{kind: patternEqual, operand: o}, true
	}
	array, ok := term.Value.(*ast.Array)
	if !ok {
		return pattern{}, false
	}
	p := pattern{kind: patternArray, parts: make([]pattern, array.Len())}
	for i := range p.parts {
		if p.parts[i], ok = s.pattern(array.Elem(i), bound); !ok {
			return pattern{}, false
		}
	}
	return p, true
}

// reference translates a path into input, data.parameters, data.cluster, a rule or a bound variable.
func (s *scope) reference(ref ast.Ref, bound ast.VarSet) (*reference, bool) {
	r := &reference{}
	head, ok := ref[0].Value.(ast.Var)
	path := ref[1:]
	switch {
	case !ok:
		return nil, false
	case bound.Contains(head):
		r.base, r.slot = baseVariable, s.slot(head)
	case head.Compare(ast.InputRootDocument.Value) == 0:
		r.base = baseInput
	case head.Compare(ast.DefaultRootDocument.Value) == 0 && len(ref) > 1 && ref[1].Value.Compare(parameters) == 0:
		r.base, path = baseParameters, ref[2:]
	case head.Compare(ast.DefaultRootDocument.Value) == 0 && len(ref) > 1 && ref[1].Value.Compare(cluster) == 0:
		r.base, path = baseCluster, ref[2:]
	case head.Compare(ast.DefaultRootDocument.Value) == 0 && len(ref) > 2 && ref[:3].IsGround():
		r.base, r.document, path = baseDocument, s.document(ref[:3]), ref[3:]
		if r.document == nil {
			return nil, false
		}
	default:
		return nil, false
	}
	for _, term := range path {
		v, isVar := term.Value.(ast.Var)
		switch {
		case isConstant(term):
			r.path = append(r.path, pathStep{kind: pathConstant, term: term})
		case isVar && bound.Contains(v):
			r.path = append(r.path, pathStep{kind: pathBound, slot: s.slot(v)})
		case isVar && !isRoot(v):
			bound.Add(v)
			r.path = append(r.path, pathStep{kind: pathFree, slot: s.slot(v)})
		default:
			return nil, false
		}
	}
	return r, true
}

func isRoot(v ast.Var) bool {
	return v.Compare(ast.InputRootDocument.Value) == 0 || v.Compare(ast.DefaultRootDocument.Value) == 0
}

func elements(array *ast.Array) []*ast.Term {
	terms := make([]*ast.Term, array.Len())
	for i := range terms {
		terms[i] = array.Elem(i)
	}
	return terms
}

// isConstant reports whether a term is a JSON value or a set of those. References can be ground and no constants.
func isConstant(term *ast.Term) bool {
	switch value := term.Value.(type) {
	case ast.Null, ast.Boolean, ast.Number, ast.String:
		return true
	case *ast.Array:
		return !value.Until(func(term *ast.Term) bool { return !isConstant(term) })
	case ast.Set:
		return !value.Until(func(term *ast.Term) bool { return !isConstant(term) })
	case ast.Object:
		return !value.Until(func(key, value *ast.Term) bool { return !isConstant(key) || !isConstant(value) })
	}
	return false
}
