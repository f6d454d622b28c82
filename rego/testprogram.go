package rego

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/vmstencil/stencil/rego/internal/sandbox"
)

// TestProgram is a policy compiled together with a module of tests, which call its
// rules with input and data.parameters replaced. It is for package suite.
type TestProgram struct {
	policy   *Policy
	compiler *ast.Compiler
	source   source
	pkg      ast.Ref
	tests    []TestRule
}

// TestRule is a rule of a test module with a name that begins with test_, or with todo_test_ when it is to be skipped.
type TestRule struct {
	Name string
	Row  int
	Todo bool
}

// The beginnings of the names of test rules.
const (
	testPrefix = "test_"
	todoPrefix = "todo_test_"
)

// CompileTests compiles a module of tests with the policy of a definition that Compile
// accepts. The module is in the package of the policy, or in that with _test
// appended. The error is a *CompileError about the module, or ctx's.
func (c *Compiler) CompileTests(ctx context.Context, policy *Policy, name, text string) (*TestProgram, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tests := newSource(text)
	if problems := tests.check(); len(problems) > 0 {
		return nil, &CompileError{problems}
	}
	capabilities := c.sandbox.Capabilities
	module, problems := tests.parse(name, capabilities)
	if len(problems) > 0 {
		return nil, &CompileError{inOrder(problems)}
	}
	form := &shape{source: tests, module: module, helpers: c.helpers.documented, test: true}
	form.check()
	if len(form.problems) > 0 {
		return nil, &CompileError{inOrder(form.problems)}
	}
	subject, problems := policy.program.source.parse(sourceFile, capabilities)
	if len(problems) > 0 {
		return nil, &CompileError{inOrder(problems)}
	}
	own := strings.TrimSuffix(module.Package.Path.String(), "_test")
	if subject.Package.Path.String() != own {
		return nil, &CompileError{[]Problem{tests.at(CodeReference, module.Package.Location,
			"the tests are in %s; they must be in %s or %s_test", module.Package.Path, subject.Package.Path, subject.Package.Path)}}
	}
	modules := map[string]*ast.Module{policyModule: subject, "tests": module}
	if used := c.helpers.module(subject, module); used != nil {
		modules[helperModule] = used
	}
	compiler := ast.NewCompiler().WithCapabilities(capabilities).SetErrorLimit(maxProblems)
	compiler.WithStageAfterID(ast.StageCheckRecursion, ast.CompilerStageDefinition{
		Name: "stencil_growth", MetricName: "stencil_growth",
		Stage: func(compiler *ast.Compiler) *ast.Error {
			_, rejection := checkGrowth(tests, compiler)
			return rejection
		},
	})
	compiler.Compile(modules)
	if compiler.Failed() {
		problems := tests.compileProblems(compiler)
		for i := range problems {
			problems[i].Message = named(problems[i].Message, policy.definition.Name)
		}
		return nil, &CompileError{inOrder(problems)}
	}
	program := &TestProgram{policy: policy, compiler: compiler, source: tests, pkg: module.Package.Path}
	for _, rule := range module.Rules {
		name := ruleName(rule)
		isTest := strings.HasPrefix(name, testPrefix) || strings.HasPrefix(name, todoPrefix)
		known := slices.ContainsFunc(program.tests, func(t TestRule) bool { return t.Name == name })
		if isTest && !known {
			program.tests = append(program.tests, TestRule{Name: name, Row: rule.Location.Row, Todo: strings.HasPrefix(name, todoPrefix)})
		}
	}
	return program, nil
}

// Rules are the tests, in the order of the source.
func (t *TestProgram) Rules() []TestRule { return slices.Clone(t.tests) }

// Run evaluates one test, and adds to the coverage if there is one. It reports whether the test is true. The error is an *EvaluationError, or ctx's.
func (t *TestProgram) Run(ctx context.Context, rule TestRule, coverage *Coverage) (bool, error) {
	spent := sandbox.NewBudget(ctx, sandbox.MaxWeight, t.policy.patterns)
	value := ast.VarTerm("result")
	body := ast.NewBody(ast.Equality.Expr(value, ast.NewTerm(t.pkg.Append(ast.StringTerm(rule.Name)))))
	query := topdown.NewQuery(body).
		WithCompiler(t.compiler).
		WithInput(ast.ObjectTerm()).
		WithBaseCache(documents{t.policy.parameters, t.policy.cluster}).
		WithStore(noStore{}).
		WithVirtualCache(&sandbox.Results{VirtualCache: topdown.NewVirtualCache(), Budget: spent}).
		WithCancel(spent).
		WithMetrics(metrics.NoOp()).
		WithTime(noTime).
		WithStrictBuiltinErrors(true)
	if coverage != nil {
		query = query.WithQueryTracer(coverage.cover)
	}
	var result *ast.Term
	err := query.Iter(ctx, func(found topdown.QueryResult) error {
		result = found["result"]
		return nil
	})
	switch {
	case spent.Err() != nil:
		return false, t.policy.interrupted(spent.Err())
	case err != nil:
		var typed *topdown.Error
		if errors.As(err, &typed) && typed.Location != nil && typed.Location.File != sourceFile {
			return false, &EvaluationError{Policy: t.policy.definition.Name, Problem: t.source.at(CodeEvaluation, typed.Location, "%s", named(typed.Message, t.policy.definition.Name))}
		}
		return false, t.policy.failed(err)
	}
	return result != nil && result.Value.Compare(ast.Boolean(false)) != 0, nil
}
