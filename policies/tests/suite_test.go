package tests

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vmstencil/stencil/rego"
)

const source = `package limits

deny contains message if {
	cores := input.object.spec.template.spec.domain.cpu.cores
	cores > data.parameters.max
	message := sprintf("%d cores are more than %d", [cores, data.parameters.max])
}

warn contains "no owner" if not input.object.metadata.labels.owner
`

var definition = rego.Definition{Name: "limits", Source: source, Parameters: map[string]any{"max": 4}}

func newCompiler(t testing.TB) *rego.Compiler {
	t.Helper()
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	return compiler
}

func vm(cores int, labels map[string]any) rego.Document {
	return rego.Document{Object: map[string]any{
		"metadata": map[string]any{"labels": labels},
		"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"domain": map[string]any{"cpu": map[string]any{"cores": cores}}}}},
	}}
}

var owned = map[string]any{"owner": "jane"}

func TestCases(t *testing.T) {
	for name, tc := range map[string]struct {
		test Case
		want string
	}{
		"nothing expected, nothing found":  {Case{Document: vm(4, owned)}, ""},
		"what is expected is found":        {Case{Document: vm(5, nil), Deny: []string{"5 cores are more than 4"}, Warn: []string{"no owner"}}, ""},
		"other parameters for this case":   {Case{Document: vm(5, owned), Parameters: map[string]any{"max": 8}}, ""},
		"something is missing":             {Case{Document: vm(4, owned), Deny: []string{"x"}}, `deny does not return "x"`},
		"something was not expected":       {Case{Document: vm(5, owned)}, `deny returns "5 cores are more than 4", which was not expected`},
		"something else is said":           {Case{Document: vm(5, owned), Deny: []string{"x", "y"}}, `deny does not return "x", "y"; deny returns "5 cores are more than 4", which was not expected`},
		"a warning instead of a denial":    {Case{Document: vm(4, nil), Deny: []string{"no owner"}}, `deny does not return "no owner"; warn returns "no owner", which was not expected`},
		"the input is not JSON":            {Case{Document: rego.Document{Object: map[string]any{"x": struct{}{}}}}, "input.object: a value of type struct {} is not JSON"},
		"a message that is expected twice": {Case{Document: vm(4, nil), Warn: []string{"no owner", "no owner"}}, `warn does not return "no owner"`},
	} {
		t.Run(name, func(t *testing.T) {
			policy, err := newCompiler(t).Compile(context.Background(), definition)
			if err != nil {
				t.Fatal(err)
			}
			tc.test.Name = "case"
			results := Check(context.Background(), policy, []Case{tc.test})
			if len(results) != 1 || results[0].Name != "case" || results[0].Failure != tc.want || results[0].Passed() != (tc.want == "") {
				t.Errorf("got %+v, want %q", results, tc.want)
			}
		})
	}
}

func TestCasesWithData(t *testing.T) {
	policy, err := newCompiler(t).Compile(context.Background(), rego.Definition{
		Name: "p", Source: "package p\n\ndeny contains \"x\" if not \"a\" in data.cluster.names\n", Data: []rego.Reference{{Name: "names"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		data map[string]any
		want string
	}{
		"a value":                   {map[string]any{"names": []any{"a"}}, ""},
		"another value":             {map[string]any{"names": []any{"b"}}, `deny returns "x", which was not expected`},
		"none":                      {nil, "data.cluster.names has no value: the test does not set it; add it to data of the test"},
		"one that is not declared":  {map[string]any{"names": []any{"a"}, "name": 1}, "data.name: the policy declares no data of this name"},
		"one that is not of a JSON": {map[string]any{"names": struct{}{}}, "data.names: a value of type struct {} is not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			results := Check(context.Background(), policy, []Case{{Name: "case", Document: vm(1, nil), Data: tc.data}})
			if results[0].Failure != tc.want {
				t.Errorf("got %q, want %q", results[0].Failure, tc.want)
			}
		})
	}
}

const tests = `package limits_test

import data.limits

machine(cores) := {"object": {"metadata": {"labels": {"owner": "jane"}}, "spec": {"template": {"spec": {"domain": {"cpu": {"cores": cores}}}}}}}

test_small_machines_pass if {
	count(limits.deny) == 0 with input as machine(4)
}

test_large_machines_do_not if {
	limits.deny == {"5 cores are more than 4"} with input as machine(5)
}

test_a_limit_can_be_raised if {
	count(limits.deny) == 0 with input as machine(5) with data.parameters.max as 8
}

test_that_is_wrong if {
	limits.deny == {"x"} with input as machine(5)
}

test_that_fails if to_number("x") > 1

todo_test_of_tomorrow if false
`

func TestRun(t *testing.T) {
	report, err := Run(context.Background(), newCompiler(t), definition, Suite{
		Cases:   []Case{{Name: "small", Document: vm(4, owned)}},
		Modules: []Module{{Name: "limits_test.rego", Source: tests}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Result{
		{Name: "small"},
		{Name: "test_small_machines_pass", File: "limits_test.rego", Row: 7},
		{Name: "test_large_machines_do_not", File: "limits_test.rego", Row: 11},
		{Name: "test_a_limit_can_be_raised", File: "limits_test.rego", Row: 15},
		{Name: "test_that_is_wrong", File: "limits_test.rego", Row: 19, Failure: "the test is not true"},
		{Name: "test_that_fails", File: "limits_test.rego", Row: 23, Failure: "23:20: to_number: strconv.ParseFloat: parsing \"x\": invalid syntax"},
		{Name: "todo_test_of_tomorrow", File: "limits_test.rego", Row: 25, Skipped: true},
	}
	if diff := cmp.Diff(want, report.Results, cmpopts.IgnoreFields(Result{}, "Duration")); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{3, 4, 5, 6}, report.Coverage.Covered); diff != "" {
		t.Errorf("covered: %s", diff)
	}
	if diff := cmp.Diff([]int{9}, report.Coverage.NotCovered); diff != "" {
		t.Errorf("not covered: %s", diff)
	}
	if report.Coverage.Percent != 80 {
		t.Errorf("coverage is %v", report.Coverage.Percent)
	}
	if failed := report.Failed(); len(failed) != 2 || report.Results[6].Passed() {
		t.Errorf("failed: %v", failed)
	}
}

func TestErrorsOfRun(t *testing.T) {
	broken := definition
	broken.Source = "package limits\n"
	for name, tc := range map[string]struct {
		definition rego.Definition
		module     string
		want       string
	}{
		"the policy does not compile":   {broken, tests, "1:1: the policy has neither a rule deny nor a rule warn"},
		"a module does not parse":       {definition, "package limits\n\ntest_x {\n\ttrue\n}\n", "x_test.rego: 3:1: `if` keyword is required before rule body; this is Rego v0, and policies are Rego v1"},
		"a module is of another policy": {definition, "package other\n\ntest_x if true\n", "x_test.rego: 1:1: the tests are in data.other; they must be in data.limits or data.limits_test"},
		"a module calls the network":    {definition, "package limits\n\ntest_x if http.send({})\n", "x_test.rego: 3:11: http.send is not available to policies"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Run(context.Background(), newCompiler(t), tc.definition, Suite{Modules: []Module{{Name: "x_test.rego", Source: tc.module}}})
			var problems *rego.CompileError
			if !errors.As(err, &problems) || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, newCompiler(t), definition, Suite{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
