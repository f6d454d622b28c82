package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/test/product"
	"github.com/vmstencil/stencil/test/runner/selection"
)

const events = `{"Action":"start","Package":"github.com/vmstencil/stencil/test/a"}
{"Action":"run","Package":"github.com/vmstencil/stencil/test/a","Test":"TestX"}
{"Action":"output","Package":"github.com/vmstencil/stencil/test/a","Test":"TestX","Output":"    x_test.go:1: broken\n"}
{"Action":"fail","Package":"github.com/vmstencil/stencil/test/a","Test":"TestX","Elapsed":1}
{"Action":"output","Package":"github.com/vmstencil/stencil/test/a","Output":"FAIL\tgithub.com/vmstencil/stencil/test/a\t1.500s\n"}
{"Action":"fail","Package":"github.com/vmstencil/stencil/test/a","Elapsed":1.5}
{"Action":"output","Package":"github.com/vmstencil/stencil/test/b","Output":"it prints something\n"}
{"Action":"output","Package":"github.com/vmstencil/stencil/test/b","Output":"ok  \tgithub.com/vmstencil/stencil/test/b\t(cached)\n"}
{"Action":"pass","Package":"github.com/vmstencil/stencil/test/b","Elapsed":0}
{"Action":"output","Package":"github.com/vmstencil/stencil","Output":"?   \tgithub.com/vmstencil/stencil\t[no test files]\n"}
{"Action":"skip","Package":"github.com/vmstencil/stencil","Elapsed":0}
{"ImportPath":"github.com/vmstencil/stencil/test/c","Action":"build-output","Output":"c.go:1: syntax error\n"}
{"ImportPath":"github.com/vmstencil/stencil/test/c","Action":"build-fail"}
{"Action":"fail","Package":"github.com/vmstencil/stencil/test/c","Elapsed":0,"FailedBuild":"github.com/vmstencil/stencil/test/c"}
`

func TestEventsBecomeResultsAndOutput(t *testing.T) {
	var out bytes.Buffer
	got, err := read(strings.NewReader(events), false, &out)
	if err != nil {
		t.Fatal(err)
	}
	want := []result{
		{folder: "test/a", seconds: 1.5, failed: true, broken: []string{"TestX"}, output: "    x_test.go:1: broken\nFAIL\tgithub.com/vmstencil/stencil/test/a\t1.500s\n"},
		{folder: "test/b", cached: true},
		{folder: ".", empty: true},
		{folder: "test/c", failed: true},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	for _, text := range []string{"x_test.go:1: broken", "(cached)", "c.go:1: syntax error"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("the output lacks %q:\n%s", text, out.String())
		}
	}
	if strings.Contains(out.String(), "it prints something") {
		t.Errorf("a package that passed has more than one line:\n%s", out.String())
	}
}

func TestARunFailsForItsTestsAndItsBudgets(t *testing.T) {
	budgets := &plan{DefaultSeconds: 10, Seconds: map[string]float64{"test/slow": 100}}
	for _, tc := range []struct {
		name    string
		summary summary
		want    []string
	}{
		{name: "everything within budget", summary: summary{results: []result{{folder: "test/slow", seconds: 90}, {folder: "x", seconds: 9}}, seconds: 99, budget: 100, stretch: 1}},
		{name: "a failed test", summary: summary{results: []result{{folder: "x", failed: true}}, budget: 100, stretch: 1}, want: []string{"x failed"}},
		{name: "a slow package in a suite that is not slow", summary: summary{results: []result{{folder: "x", seconds: 11}}, seconds: 11, budget: 100, stretch: 1}},
		{
			name:    "a slow suite on a busy machine",
			summary: summary{seconds: 201, budget: 100, stretch: 2},
			want:    []string{"the suite took 201 s, its budget in test/suites.yaml is 100 s (times 2.0: other programs used the processors, or these are slow)"},
		},
		{name: "no suite, no budget", summary: summary{results: []result{{folder: "x", seconds: 11}}, seconds: 11, stretch: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.summary.plan = budgets
			if diff := cmp.Diff(tc.want, tc.summary.problems()); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBudgetsGrowByWhatOtherProgramsTake(t *testing.T) {
	for _, tc := range []struct {
		name                   string
		others, capacity, want float64
	}{
		{"nothing", 0, 100, 1},
		{"a quarter", 25, 100, 4.0 / 3},
		{"half", 50, 100, 2},
		{"all", 100, 100, mostStretch},
		{"a clock that went backwards", -5, 100, 1},
		{"no capacity", 5, 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := stretch(tc.others, tc.capacity); got != tc.want {
				t.Errorf("stretch(%v, %v) = %v, want %v", tc.others, tc.capacity, got, tc.want)
			}
		})
	}
}

func TestProcessorTimeIsReadFromProcStat(t *testing.T) {
	got, err := parseBusy([]byte("cpu  100 20 30 4000 500 6 7 8 9 10\ncpu0 1 2 3 4\n"))
	if want := (100 + 20 + 30 + 6 + 7 + 8) / 100.0; err != nil || got != want {
		t.Errorf("parseBusy = %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", "cpu 1 2", "cpu a b c d e f g h"} {
		if _, err := parseBusy([]byte(bad)); err == nil {
			t.Errorf("parseBusy(%q) has no error", bad)
		}
	}
}

// TestEveryPackageWithTestsBelongsToASuite compares suites.yaml with the packages of the test module: a package that no suite names
// would never run.
func TestEveryPackageWithTestsBelongsToASuite(t *testing.T) {
	root, err := product.Root()
	if err != nil {
		t.Fatal(err)
	}
	read, err := readPlan(root)
	if err != nil {
		t.Fatal(err)
	}
	list := func(patterns ...string) []string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "go", append([]string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"}, patterns...)...)
		command.Dir, command.Stderr = filepath.Join(root, "test"), os.Stderr
		out, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(out))
	}
	var named []string
	for _, suite := range read.Suites {
		for _, each := range suite.Modules {
			if each.Path == "test" {
				named = append(named, list(each.Packages...)...)
			}
		}
	}
	for _, each := range list("./...") {
		if !slices.Contains(named, each) {
			t.Errorf("test/suites.yaml names %s in no suite", each)
		}
	}
	for folder := range read.Seconds {
		if _, err := os.Stat(filepath.Join(root, folder)); err != nil {
			t.Errorf("test/suites.yaml has a budget for %s: %v", folder, err)
		}
	}
}

// TestEveryMarkedTestBelongsToACall fails for a test whose mark takes it out of the calls that name its package, and into none.
func TestEveryMarkedTestBelongsToACall(t *testing.T) {
	root, err := product.Root()
	if err != nil {
		t.Fatal(err)
	}
	read, err := readPlan(root)
	if err != nil {
		t.Fatal(err)
	}
	reached := map[string]bool{} // By mark and folder.
	modules := map[string]bool{}
	for _, suite := range read.Suites {
		for _, each := range suite.Modules {
			modules[each.Path] = true
			folders, err := each.folders(root)
			if err != nil {
				t.Fatal(err)
			}
			for _, folder := range folders {
				reached[each.Marked+" "+filepath.Clean(folder)] = true
			}
			if _, err := each.selectMarked(root); err != nil {
				t.Error(err)
			}
		}
	}
	for path := range modules {
		folders, err := module{Path: path}.folders(root)
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range folders {
			found, err := readMarks(root, []string{folder})
			if err != nil {
				t.Error(err)
			}
			for name, mark := range found {
				if mark != "" && mark != plain && !reached[mark+" "+filepath.Clean(folder)] {
					t.Errorf("%s in %s has the mark suite:%s, and no call of test/suites.yaml with marked: %s names the package", name, folder, mark, mark)
				}
			}
		}
	}
}

func TestThePackagesOfUnknownTimeAreOrderedByTheirBudgets(t *testing.T) {
	known := &history{
		record:   selection.Record{Passed: map[string]selection.Pass{"full test/known": {Seconds: 90}}},
		packages: []map[string]selection.Package{{"test/known": {Key: "full test/known"}, "test/new": {Key: "full test/new"}}},
		budget:   func(string) float64 { return 200 },
	}
	for folder, want := range map[string]float64{"test/known": 90, "test/new": 100} {
		if got := known.seconds(0, folder); got != want {
			t.Errorf("%s: %g s, want %g", folder, got, want)
		}
	}
}

func TestTheTableMarksPackagesOverTheirBudgets(t *testing.T) {
	var out strings.Builder
	summary{
		results: []result{{folder: "test/slow", seconds: 101}, {folder: "x", seconds: 9}, {folder: "y", seconds: 21}},
		seconds: 120, budget: 200, stretch: 2, plan: &plan{DefaultSeconds: 10, Seconds: map[string]float64{"test/slow": 100}},
	}.print(&out)
	want := `
seconds  budget  package
  101.0     100  test/slow
   21.0      10  y over its budget
    9.0      10  x
  120.0     200  in all (times 2.0: other programs used the processors, or these are slow)
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
