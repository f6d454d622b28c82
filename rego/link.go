package rego

import (
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/vmstencil/stencil/rego/internal/fastpath"
	"github.com/vmstencil/stencil/rego/internal/sandbox"
)

// The names of modules in a compilation; only the policy's own appears in messages.
const (
	policyModule = "policy"
	helperModule = "helpers"
	typesModule  = "types of parameters"
)

// program is a compiled module with what its evaluation needs.
//
// Policies of equal source share it.
type program struct {
	source   source
	metadata Metadata
	// reads are the paths in input that the rules may read.
	reads [][]string
	// compared are the constants with which the rules compare places in input.
	compared []Compared

	compiler *ast.Compiler
	query    ast.Body
	entries  []string // which of deny and warn the policy has
	// rows are where the entry rules begin.
	rows map[string]int
	// constant are the rules that depend on the parameters alone.
	constant []string
	// functions are the bounded functions.
	functions map[string]*topdown.Builtin
	// fast evaluates the policy without OPA's evaluator; nil if it cannot.
	fast     *fastpath.Program
	attempts attempts
}

// link compiles the module with the helpers that it uses.
func (c *Compiler) link(text source, d Definition, kinds []string, module *ast.Module, environments *environments) (*program, []Problem) {
	env, err := environments.typesFor(c.sandbox.Capabilities, kinds, d.AnyFields)
	if err != nil {
		return nil, []Problem{{Code: CodeCompile, Message: err.Error()}}
	}
	modules := map[string]*ast.Module{policyModule: module}
	if used := c.helpers.module(module); used != nil {
		modules[helperModule] = used
	}
	described := d.Schema
	if described == nil && d.Parameters != nil {
		described = schemaOf(d.Parameters)
	}
	if described != nil || len(d.Data) > 0 {
		if modules[typesModule], err = typesOfData(described, d.Data); err != nil {
			return nil, []Problem{{Code: CodeSchema, Field: schemaPath.String(), Message: err.Error()}}
		}
	}
	var problems []Problem
	compiler := ast.NewCompiler().WithStrict(true).WithCapabilities(c.sandbox.Capabilities).SetErrorLimit(maxProblems)
	compiler.WithStageAfterID(ast.StageCheckRecursion, ast.CompilerStageDefinition{
		Name: "stencil_types", MetricName: "stencil_types",
		Stage: func(compiler *ast.Compiler) *ast.Error {
			var rejection *ast.Error
			problems, rejection = checkGrowth(text, compiler)
			compiler.TypeEnv = env
			return rejection
		},
	})
	compiler.Compile(modules)
	if compiler.Failed() {
		return nil, append(problems, text.compileProblems(compiler)...)
	}
	problems = append(problems, c.checkTyping(text, kinds, compiler)...)
	if data := compiler.RuleTree.Child(ast.DefaultRootDocument.Value); data != nil {
		delete(data.Children, parametersTerm.Value)
		if len(d.Data) > 0 {
			delete(data.Children, clusterTerm.Value)
		}
	}
	var rules []*ast.Rule
	for name, compiled := range compiler.Modules {
		if name != typesModule {
			rules = append(rules, compiled.Rules...)
		}
	}
	if rejected := c.sandbox.Harden(rules); len(rejected) > 0 {
		for _, location := range rejected {
			problems = append(problems, text.at(CodeLimit, location, "two patterns are unified of which each binds variables; write it in two steps"))
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return newProgram(compiler, module, c.sandbox.Functions, perObjectSchemas(d)), nil
}

// newProgram makes the query of a compiled module, and releases what only the compilation needed.
func newProgram(compiler *ast.Compiler, module *ast.Module, functions map[string]*topdown.Builtin, perObject map[string]map[string]any) *program {
	p := &program{compiler: compiler, functions: functions, rows: map[string]int{}}
	for _, entry := range entries {
		for _, rule := range module.Rules {
			if ruleName(rule) == entry {
				ref := policyPackage.Append(ast.StringTerm(entry))
				p.query = append(p.query, ast.Equality.Expr(ast.VarTerm(entry), ast.NewTerm(ref)))
				p.entries = append(p.entries, entry)
				p.rows[entry] = rule.Location.Row
				break
			}
		}
	}
	p.constant = constantRules(module, compiler, perObject)
	refs := make([]ast.Ref, len(p.entries))
	for i, entry := range p.entries {
		refs[i] = policyPackage.Append(ast.StringTerm(entry))
	}
	p.fast = fastpath.New(compiler, functions, refs)
	for i, expr := range p.query {
		expr.Index = i
	}
	compiler.TypeEnv, compiler.Graph, compiler.Required = nil, nil, nil
	compiler.Modules, compiler.ModuleTree = nil, nil
	return p
}

// checkGrowth rejects rules of which the evaluation would take too much stack.
func checkGrowth(text source, compiler *ast.Compiler) ([]Problem, *ast.Error) {
	rule, why := sandbox.Growth(compiler)
	if rule == nil {
		return nil, nil
	}
	return []Problem{text.at(CodeLimit, rule.Location, "%s", why)}, ast.NewError(ast.CompileErr, rule.Location, "%s", why)
}

// compileProblems translates the errors of OPA's compiler.
func (s source) compileProblems(compiler *ast.Compiler) []Problem {
	var problems []Problem
	for _, err := range compiler.Errors {
		if err == nil || strings.HasPrefix(err.Message, "error limit reached") {
			continue
		}
		problem := s.translated(err)
		if problem.Code != CodeLimit {
			problems = append(problems, problem)
		}
	}
	return problems
}

func (s source) translated(err *ast.Error) Problem {
	if strings.HasPrefix(err.Message, "the rules use each other so often") {
		return Problem{Code: CodeLimit}
	}
	location := err.Location
	code, message := CodeCompile, err.Message
	switch {
	case strings.HasPrefix(message, "undefined function "):
		name := strings.TrimPrefix(message, "undefined function ")
		if _, known := ast.BuiltinMap[name]; known {
			return s.at(CodeBuiltin, location, "%s is not available to policies", name)
		}
		if strings.HasPrefix(name, "lib.") {
			return s.at(CodeReference, location, "undefined function %s; write import data.lib", name)
		}
	case message == "var lib is unsafe":
		return s.at(CodeReference, location, "%s; write import data.lib", message)
	case err.Code == ast.TypeErr:
		code = CodeType
		if at, text := unknownField(err); text != "" {
			if at != nil && at.Row > 0 {
				location = at
			}
			message = text
		} else if err.Details != nil {
			message += detail(err)
		}
	}
	message = strings.ReplaceAll(message, policyPackage.String()+".", "")
	return s.at(code, location, "%s", message)
}

// unknownField describes the most common mistake: a field that does not exist.
func unknownField(err *ast.Error) (*ast.Location, string) {
	switch d := err.Details.(type) {
	case *ast.RefErrInvalidDetail:
		name, ok := d.Ref[d.Pos].Value.(ast.String)
		if !ok || d.Pos == 0 || len(d.OneOf) == 0 {
			return nil, ""
		}
		known := map[string]bool{}
		for _, value := range d.OneOf {
			if text, ok := value.(ast.String); ok {
				known[string(text)] = true
			}
		}
		return d.Ref[d.Pos].Location, fmt.Sprintf("unknown field: %s has no %q%s", documentName(d.Ref[:d.Pos]), string(name), suggestion(string(name), known))
	case *ast.RefErrUnsupportedDetail:
		if d.Pos+1 < len(d.Ref) {
			return d.Ref[d.Pos+1].Location, fmt.Sprintf("%s has no fields: it is a %s", documentName(d.Ref[:d.Pos+1]), typeName(d.Have))
		}
	}
	return nil, ""
}

func documentName(ref ast.Ref) string {
	return strings.ReplaceAll(ref.String(), policyPackage.String()+".", "")
}

// detail returns what OPA reports in addition to the message, on one line.
func detail(err *ast.Error) string {
	var parts []string
	switch d := err.Details.(type) {
	case *ast.ArgErrDetail:
		// The result follows the arguments.
		name, _, _ := strings.Cut(err.Message, ": ")
		if declared, ok := ast.BuiltinMap[name]; ok && len(d.Have) >= declared.Decl.Arity() {
			n := declared.Decl.Arity()
			d = &ast.ArgErrDetail{Have: d.Have[:n], Want: types.FuncArgs{Args: d.Want.Args[:min(n, len(d.Want.Args))]}}
		}
		have := make([]string, len(d.Have))
		for i, t := range d.Have {
			have[i] = typeName(t)
		}
		want := make([]string, len(d.Want.Args))
		for i, t := range d.Want.Args {
			want[i] = typeName(t)
		}
		parts = append(parts, "have ("+strings.Join(have, ", ")+")", "want ("+strings.Join(want, ", ")+")")
	case *ast.UnificationErrDetail:
		parts = append(parts, typeName(d.Left)+" and "+typeName(d.Right)+" are never equal")
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}
