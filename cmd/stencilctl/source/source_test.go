package source_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	"github.com/vmstencil/stencil/internal/testfile"
)

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	at := t.TempDir()
	for name, content := range files {
		path := filepath.Join(at, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		testfile.Write(t, path, content)
	}
	return at
}

func TestPoliciesOfOneFile(t *testing.T) {
	const file = "testdata/mixed.yaml"
	content := testfile.Read(t, file)
	lines := strings.Split(string(content), "\n")
	policies, err := (&source.Reader{}).Policies([]string{file})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, policy := range policies {
		if len(policy.Problems) > 0 {
			t.Errorf("%s: %v", policy.Name(), policy.Problems)
		}
		_, _, known := policy.Locate(1, 1)
		got = append(got, fmt.Sprintf("%s %s %v", policy.Name(), policy.Spec.Enforcement, known))
		if !known {
			continue
		}
		for i, want := range strings.Split(strings.TrimSpace(policy.Spec.Definition.Source), "\n") {
			row, column, _ := policy.Locate(i+1, 1)
			if line := lines[row-1]; want != "" && line[column-1:] != want {
				t.Errorf("%s: row %d is said to be %d:%d, where %q stands instead of %q", policy.Name(), i+1, row, column, line, want)
			}
		}
	}
	want := []string{"first Deny true", "second Warn true", "third Deny false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
}

func TestPoliciesOfPaths(t *testing.T) {
	at := folder(t, map[string]string{
		"a.rego":          "package a\ndeny contains \"no\"\n",
		"a_test.rego":     "package a_test\ntest_it if true\n",
		"other.yaml":      "kind: ConfigMap\nitems: 3\n",
		"empty.yml":       "# nothing\n",
		"deep/b.json":     `{"apiVersion": "stencil.kubevirt.io/v1alpha1", "kind": "VirtualMachinePolicy", "metadata": {"name": "b"}, "spec": {"rego": "package b"}}`,
		".hidden/c.rego":  "package c\n",
		"notes.txt":       "package d\n",
		"broken/bad.yaml": "a: [\n",
		"twice/x.yaml":    "kind: A\nkind: B\n",
	})
	in := func(names ...string) []string {
		var paths []string
		for _, name := range names {
			paths = append(paths, filepath.Join(at, name))
		}
		return paths
	}
	for name, tc := range map[string]struct {
		paths []string
		stdin string
		want  []string
		fails string
	}{
		"a file":                         {paths: in("a.rego"), want: []string{"a"}},
		"a folder and what is below":     {paths: in("deep", "a.rego"), want: []string{"b", "a"}},
		"the standard input":             {paths: []string{"-"}, stdin: `{"kind": "VirtualMachinePolicy", "metadata": {"name": "s"}}`, want: []string{"s"}},
		"a file that does not exist":     {paths: in("none.yaml"), fails: "no such file"},
		"a named file without a policy":  {paths: in("other.yaml"), fails: "holds no VirtualMachinePolicy"},
		"a test is no policy":            {paths: in("a_test.rego"), fails: "no policies"},
		"a file that is no YAML":         {paths: in("broken"), fails: "bad.yaml"},
		"a key that is there twice":      {paths: in("twice"), fails: `key "kind" already set`},
		"an empty standard input":        {paths: []string{"-"}, fails: "holds no VirtualMachinePolicy"},
		"a standard input of other text": {paths: []string{"-"}, stdin: "words", fails: "not an object"},
	} {
		t.Run(name, func(t *testing.T) {
			policies, err := (&source.Reader{In: strings.NewReader(tc.stdin)}).Policies(tc.paths)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) || cli.ExitCode(err) != cli.ExitUsage {
					t.Errorf("error %v with exit code %d, want %q with %d", err, cli.ExitCode(err), tc.fails, cli.ExitUsage)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, policy := range policies {
				got = append(got, policy.Name())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("policies (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProblemsOfManifests(t *testing.T) {
	at := folder(t, map[string]string{"p.yaml": `
apiVersion: stencil.kubevirt.io/v1
kind: VirtualMachinePolicy
spec:
  rego: package p
  enforce: Deny
  enforcement: deny
  timeoutMilliseconds: 501
  match:
    operations: [CONNECT]
    kinds: [VirtualMachineTemplate]
    templates: [{name: a, selector: {}}]
    subjects: {exclude: [{kind: ServiceAccount, name: robot}]}
  tests:
  - {name: same, input: {object: {}}}
  - {name: same, input: {}}
`})
	policies, err := (&source.Reader{}).Policies([]string{at})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, problem := range policies[0].Problems {
		got = append(got, strings.TrimPrefix(problem.Error(), "<nil>"))
	}
	want := []string{
		`: Invalid value: unknown field "spec.enforce"`,
		`apiVersion: Unsupported value: "stencil.kubevirt.io/v1": supported values: "stencil.kubevirt.io/v1alpha1"`,
		`metadata.name: Required value`,
		`spec.enforcement: Unsupported value: "deny": supported values: "Deny", "Warn", "Audit"`,
		`spec.timeoutMilliseconds: Invalid value: 501: must be from 1 to 500`,
		`spec.match.operations[0]: Unsupported value: "CONNECT": supported values: "CREATE", "UPDATE", "DELETE"`,
		`spec.match.templates: Forbidden: templates are those of VirtualMachines, which kinds does not list`,
		`spec.match.templates[0].namespace: Required value`,
		`spec.match.templates[0].name: Forbidden: only one of name and selector may be given`,
		`spec.match.subjects.exclude[0].namespace: Invalid value: "": a ServiceAccount needs a namespace, a User or Group takes none`,
		`spec.tests[1].name: Duplicate value: "same"`,
		`spec.tests[1].input.object: Required value: object or, for a DELETE, oldObject must be given`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestTestsBelongToPoliciesOfTheirFolderAndPackage(t *testing.T) {
	at := folder(t, map[string]string{
		"a.rego":       "package a\n",
		"a_test.rego":  "package a_test\n",
		"more/b.rego":  "package x.b\n",
		"more/b2.yaml": "apiVersion: stencil.kubevirt.io/v1alpha1\nkind: VirtualMachinePolicy\nmetadata: {name: b2}\nspec:\n  rego: package x.b\n",
		// In the package itself, which has access to more rules.
		"more/anything_test.rego": "package x.b\n",
	})
	reader := &source.Reader{}
	policies, err := reader.Policies([]string{at})
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.AddTests(policies, []string{at}); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, policy := range policies {
		got[policy.Name()] = len(policy.Modules)
	}
	if diff := cmp.Diff(map[string]int{"a": 1, "b": 1, "b2": 1}, got); diff != "" {
		t.Errorf("test modules (-want +got):\n%s", diff)
	}

	stray := filepath.Join(at, "stray_test.rego")
	testfile.Write(t, stray, "package stray\n")
	if err := reader.AddTests(policies, []string{at}); err == nil || !strings.Contains(err.Error(), "no policy in") {
		t.Errorf("a test that belongs to no policy: error %v", err)
	}
}

func TestRewrittenFilesChangeInTheModulesOnly(t *testing.T) {
	files, err := (&source.Reader{}).Files([]string{"testdata/mixed.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	file := files[0]
	same := []string{file.Modules[0].Source, file.Modules[1].Source, file.Modules[2].Source}
	if diff := cmp.Diff(string(file.Content), string(file.WithModules(same))); diff != "" {
		t.Errorf("nothing was changed, yet (-want +got):\n%s", diff)
	}
	got := string(file.WithModules([]string{"package first\n\nx := 1\n\n\ny := 2\n", "package second\n", same[2]}))
	want := strings.NewReplacer(
		"    package first\n\n    deny contains \"no\" if input.object.spec.running\n", "    package first\n\n    x := 1\n\n\n    y := 2\n",
		"        package second\n\n        # ---\n        deny contains \"no\"\n", "        package second\n",
	).Replace(string(file.Content))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
