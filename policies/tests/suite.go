// Package tests runs the tests of a policy: cases, which are inputs and the
// messages expected for them, and modules of tests written in Rego.
package tests

import (
	"context"
	"time"

	"github.com/vmstencil/stencil/rego"
)

// Case is one test of a policy: an input and the exact messages that the policy must
// return for it, in any order.
type Case struct {
	Name     string
	Document rego.Document
	// Parameters are data.parameters in this case; the policy's own when nil.
	Parameters map[string]any
	// Data are the values of data.cluster in this case, by name.
	Data map[string]any
	Deny []string
	Warn []string
}

// Module is a file of tests in Rego: its rules with names that begin with test_ are
// the tests. Its package is the package of the policy, or that name with _test
// appended. The policy is available as data.PACKAGE.
type Module struct {
	Name   string // of the file
	Source string
}

// Suite is all tests of one policy.
type Suite struct {
	Cases   []Case
	Modules []Module
}

// Result is the result of one test.
type Result struct {
	// Name is the name of the case or of the rule.
	Name string
	// File is the Name of the module, empty for a case; Row is the line of the rule.
	File string
	Row  int
	// Failure describes the expected and the actual result, empty if the test passed.
	Failure  string
	Skipped  bool
	Duration time.Duration
}

// Passed reports whether the test ran and produced the expected result.
func (r Result) Passed() bool { return r.Failure == "" && !r.Skipped }

// Coverage lists the rows of the policy that the tests have evaluated.
type Coverage struct {
	Covered, NotCovered []int
	// Percent of the rows that could have been evaluated, 0 to 100.
	Percent float64
}

// Report holds the results of all tests.
type Report struct {
	Results  []Result
	Coverage Coverage
}

// Failed returns the results that did not pass and were not skipped.
func (r Report) Failed() []Result {
	var failed []Result
	for _, result := range r.Results {
		if result.Failure != "" {
			failed = append(failed, result)
		}
	}
	return failed
}

// Check runs the cases of a compiled policy, without coverage. It is called before a
// policy becomes active. When ctx ends, the cases that are left fail.
func Check(ctx context.Context, policy *rego.Policy, cases []Case) []Result {
	results := make([]Result, 0, len(cases))
	for _, c := range cases {
		results = append(results, check(policy, c, func(policy *rego.Policy, in *rego.Input) (rego.Result, error) {
			return policy.Evaluate(ctx, in)
		}))
	}
	return results
}

// Run compiles a policy with its test modules and runs all tests with coverage.
// The error is a *rego.CompileError about the policy, a *ModuleError about a test
// module, or ctx's.
func Run(ctx context.Context, compiler *rego.Compiler, d rego.Definition, s Suite) (Report, error) {
	policy, err := compiler.Compile(ctx, d)
	if err != nil {
		return Report{}, err
	}
	var (
		report   Report
		coverage = rego.NewCoverage()
	)
	for _, c := range s.Cases {
		report.Results = append(report.Results, check(policy, c, func(policy *rego.Policy, in *rego.Input) (rego.Result, error) {
			return policy.EvaluateCovered(ctx, in, coverage)
		}))
	}
	for _, module := range s.Modules {
		results, err := runModule(ctx, compiler, policy, module, coverage)
		if err != nil {
			return Report{}, err
		}
		report.Results = append(report.Results, results...)
	}
	report.Coverage.Covered, report.Coverage.NotCovered = coverage.Rows(policy)
	if all := len(report.Coverage.Covered) + len(report.Coverage.NotCovered); all > 0 {
		report.Coverage.Percent = 100 * float64(len(report.Coverage.Covered)) / float64(all)
	}
	return report, nil
}
