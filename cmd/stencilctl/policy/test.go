package policy

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
)

// testCommand is the command test.
type testCommand struct {
	streams  cli.Streams
	sources  sources
	format   *cli.Format
	verbose  bool
	coverage bool
	minimum  float64
}

func newTest(streams cli.Streams) *cobra.Command {
	t := testCommand{streams: streams, format: cli.NewFormat(cli.Table, cli.JSON, cli.JUnit, cli.SARIF)}
	var files cli.Files
	command := &cobra.Command{
		Use:   "test FILE... | -f FILE...",
		Short: "Run the tests of policies",
		Long: `Run the tests of policies.

Tests are those under spec.tests of a VirtualMachinePolicy, and the rules called test_... in files called *_test.rego that
are in the folder of the policy and in its package, or in that package with _test appended. A test of a manifest names
exactly the messages that the policy must come to.`,
		Example: `  stencilctl policy test policies/
  stencilctl policy test policies/ --coverage --coverage-min 90
  stencilctl policy test policies/ -o junit > report.xml`,
		RunE: func(command *cobra.Command, paths []string) error {
			t.coverage = t.coverage || command.Flags().Changed("coverage-min")
			return t.run(command.Context(), files.All(paths))
		},
	}
	files.Register(command)
	t.sources.register(command)
	command.Flags().BoolVarP(&t.verbose, "verbose", "v", false, "list the tests that pass, too")
	command.Flags().BoolVar(&t.coverage, "coverage", false, "report how much of each policy the tests evaluate, and which rows they do not")
	command.Flags().Float64Var(&t.minimum, "coverage-min", 0, "percent of each policy that the tests must evaluate")
	t.format.Register(command, "output", "o")
	cli.Alias(command, "format", "output")
	return command
}

// report is the result of the tests of one policy. Its JSON form is output.
type report struct {
	Policy string `json:"policy"`
	File   string `json:"file"`
	// Problems are the reasons why no test could run, and what no request reaches.
	Problems []problem    `json:"problems,omitempty"`
	Tests    []testResult `json:"tests"`
	Passed   int          `json:"passed"`
	Failed   int          `json:"failed"`
	Skipped  int          `json:"skipped"`
	Coverage *coverage    `json:"coverage,omitempty"`
}

// testResult is the result of one test.
type testResult struct {
	Name string `json:"name"`
	// File and Row are the position of a test in Rego.
	File         string `json:"file,omitempty"`
	Row          int    `json:"row,omitempty"`
	Outcome      string `json:"outcome"`
	Failure      string `json:"failure,omitempty"`
	Microseconds int64  `json:"microseconds"`

	duration time.Duration
}

// The results of a test.
const (
	testPassed  = "passed"
	testFailed  = "failed"
	testSkipped = "skipped"
)

// coverage is how much of a policy its tests evaluate. Rows are those of the file.
type coverage struct {
	Percent    float64 `json:"percent"`
	NotCovered []int   `json:"notCovered,omitempty"`
	// TooLow means that it is less than the required minimum.
	TooLow bool `json:"tooLow,omitempty"`
}

func (r *report) good() bool {
	return r.Failed == 0 && len(r.Problems) == 0 && (r.Coverage == nil || !r.Coverage.TooLow)
}

func (t *testCommand) run(ctx context.Context, paths []string) error {
	reader, err := t.sources.reader(t.streams)
	if err != nil {
		return err
	}
	policies, err := reader.Policies(paths)
	if err != nil {
		return err
	}
	if err := reader.AddTests(policies, paths); err != nil {
		return err
	}
	compiler, err := rego.NewCompiler()
	if err != nil {
		return cli.Internal(err)
	}
	all := []report{}
	good := true
	for _, policy := range policies {
		r, err := t.test(ctx, compiler, policy)
		if err != nil {
			return err
		}
		all, good = append(all, r), good && r.good()
	}
	if err := t.print(all); err != nil {
		return err
	}
	if !good {
		return cli.ErrFindings
	}
	return nil
}

func (t *testCommand) test(ctx context.Context, compiler *rego.Compiler, policy *source.Policy) (report, error) {
	r := report{
		Policy: policy.Name(), File: policy.File, Tests: []testResult{},
		Problems: manifestProblems(policy.File, policy.Name(), policy.Problems),
	}
	compiled, err := compile(ctx, compiler, policy.Spec.Definition, compileTimeout)
	var found suite.Report
	if err == nil {
		found, err = suite.Run(ctx, compiler, policy.Spec.Definition, suite.Suite{Cases: policy.Spec.Cases, Modules: policy.Modules})
		// It is not compiled again while it exists.
		runtime.KeepAlive(compiled)
	}
	if err != nil {
		problems := problemsOf(policy.File, policy.Name(), policy, err)
		var module *suite.ModuleError
		if errors.As(err, &module) {
			problems = problemsOf(module.Module, "", source.Whole{}, err)
		}
		if len(problems) == 0 {
			return r, cli.Internal(fmt.Errorf("testing policy %s: %w", policy.Name(), err))
		}
		r.Problems = append(r.Problems, problems...)
		return r, nil
	}
	r.Problems = append(r.Problems, unreached(policy, compiled)...)
	for _, each := range found.Results {
		r.add(each)
	}
	if t.coverage {
		r.Coverage = &coverage{Percent: found.Coverage.Percent, TooLow: found.Coverage.Percent < t.minimum}
		for _, row := range found.Coverage.NotCovered {
			row, _, _ := policy.Locate(row, 0)
			r.Coverage.NotCovered = append(r.Coverage.NotCovered, row)
		}
		r.Coverage.NotCovered = slices.Compact(r.Coverage.NotCovered)
	}
	return r, nil
}

func (r *report) add(from suite.Result) {
	to := testResult{
		Name: from.Name, File: from.File, Row: from.Row, Outcome: testPassed, Failure: from.Failure,
		Microseconds: from.Duration.Microseconds(), duration: from.Duration,
	}
	switch {
	case from.Skipped:
		to.Outcome = testSkipped
		r.Skipped++
	case from.Failure != "":
		to.Outcome = testFailed
		r.Failed++
	default:
		r.Passed++
	}
	r.Tests = append(r.Tests, to)
}
