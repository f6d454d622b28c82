package tests

import (
	"context"
	"errors"
	"time"

	"github.com/vmstencil/stencil/rego"
)

// ModuleError is the error of a test module that does not compile.
type ModuleError struct {
	Module string
	Err    *rego.CompileError
}

func (e *ModuleError) Error() string { return e.Module + ": " + e.Err.Error() }

func (e *ModuleError) Unwrap() error { return e.Err }

func runModule(ctx context.Context, compiler *rego.Compiler, policy *rego.Policy, module Module, coverage *rego.Coverage) ([]Result, error) {
	program, err := compiler.CompileTests(ctx, policy, module.Name, module.Source)
	if err != nil {
		var problems *rego.CompileError
		if errors.As(err, &problems) {
			return nil, &ModuleError{Module: module.Name, Err: problems}
		}
		return nil, err
	}
	var results []Result
	for _, rule := range program.Rules() {
		result := Result{Name: rule.Name, File: module.Name, Row: rule.Row, Skipped: rule.Todo}
		if !rule.Todo {
			begin := time.Now()
			passed, err := program.Run(ctx, rule, coverage)
			result.Duration = time.Since(begin)
			switch {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case err != nil:
				result.Failure = err.Error()
			case !passed:
				result.Failure = "the test is not true"
			}
		}
		results = append(results, result)
	}
	return results, nil
}
