package selection_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/test/runner/selection"
)

// checkout is a small repository with the import paths of Stencil: two rooms, one program of them, and end-to-end tests that start it.
var checkout = map[string]string{
	"go.mod":                     "module github.com/vmstencil/stencil\n\ngo 1.26\n",
	"rego/rego.go":               "package rego\n\nfunc Answer() int { return 42 }\n",
	"rego/rego_test.go":          "package rego\n\nimport \"testing\"\n\nfunc TestAnswer(t *testing.T) { _ = \"../docs/policies.md\" }\n",
	"rego/testdata/case.yaml":    "a: 1\n",
	"webhooks/webhooks.go":       "package webhooks\n\nimport \"github.com/vmstencil/stencil/rego\"\n\nvar Answer = rego.Answer\n",
	"webhooks/webhooks_test.go":  "package webhooks\n\nimport \"testing\"\n\nfunc TestAnswer(t *testing.T) {}\n",
	"reconcilers/one/one.go":     "package one\n\nfunc Run() {}\n",
	"cmd/stencil/main.go":        "package main\n\nimport (\n\t\"github.com/vmstencil/stencil/reconcilers/one\"\n\t\"github.com/vmstencil/stencil/webhooks\"\n)\n\nfunc main() { one.Run(); webhooks.Answer() }\n",
	"cmd/stencil-defaulter/a.go": "package main\n\nfunc main() {}\n",
	"charts/stencil/values.yaml": "a: 1\n",
	"docs/policies.md":           "# Policies\n",
	"docs/examples/vm.yaml":      "kind: VirtualMachine\n",
	"docs/other.md":              "# Other\n",
	"test/go.mod":                "module github.com/vmstencil/stencil/test\n\ngo 1.26\n",
	"test/product/product.go":    "package product\n",
	"test/e2e/road/road_test.go": "package road_test\n\nimport (\n\t\"testing\"\n\n\t_ \"github.com/vmstencil/stencil/test/product\"\n)\n\nfunc TestRoad(t *testing.T) {}\n",
	"test/e2e/cli/cli_test.go":   "package cli_test\n\nimport (\n\t\"testing\"\n\n\t_ \"github.com/vmstencil/stencil/test/product\"\n)\n\nfunc TestCLI(t *testing.T) {}\n",
	"test/gen/gen_test.go":       "package gen\n\nimport \"testing\"\n\nfunc TestGen(t *testing.T) {}\n",
}

// executed is a measurement of the checkout: nothing has seen reconcilers/one.
var executed = selection.Executed{"test/e2e/road": {"webhooks", "rego"}, "test/e2e/cli": {"rego"}}

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// read returns the packages with tests of a checkout, by their keys.
func read(t *testing.T, root string) (*selection.Tree, map[string]selection.Package) {
	t.Helper()
	tree, err := selection.ReadTree(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]selection.Package{}
	for _, module := range []string{".", "test"} {
		packages, err := tree.Packages(t.Context(), selection.Call{Suite: "gate", Module: module}, executed, []string{"etcd v1"})
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range packages {
			found[each.Key] = each
		}
	}
	return tree, found
}

func newCheckout(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write(t, root, checkout)
	command := exec.CommandContext(t.Context(), "git", "init", "--quiet")
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return root
}

// TestAChangeSelects changes one file at a time and compares which packages have other inputs.
func TestAChangeSelects(t *testing.T) {
	const road, cli, gen, rego, webhooks = "gate test/e2e/road", "gate test/e2e/cli", "gate test/gen", "gate rego", "gate webhooks"
	for name, tc := range map[string]struct {
		file, content string
		want          []string
	}{
		"what a test binary is linked with":           {"rego/rego.go", "package rego\n\nfunc Answer() int { return 41 }\n", []string{rego, cli, road, webhooks}},
		"a comment":                                   {"rego/rego.go", "// Package rego answers.\npackage rego\n\nfunc Answer() int { return 42 } // Always.\n", nil},
		"a directive":                                 {"rego/rego.go", "package rego\n\n//go:noinline\nfunc Answer() int { return 42 }\n", []string{rego, cli, road, webhooks}},
		"what only one package executes":              {"webhooks/webhooks.go", checkout["webhooks/webhooks.go"] + "\nvar x = 1\n", []string{road, webhooks}},
		"what no measurement has seen":                {"reconcilers/one/one.go", "package one\n\nfunc Run() { println() }\n", []string{cli, road}},
		"a test":                                      {"rego/rego_test.go", checkout["rego/rego_test.go"] + "\nfunc TestB(t *testing.T) {}\n", []string{rego}},
		"a file that a test reads":                    {"rego/testdata/case.yaml", "a: 2\n", []string{rego}},
		"a document that a test names":                {"docs/policies.md", "# Other\n", []string{rego}},
		"a document that none names":                  {"docs/other.md", "# New\n", nil},
		"an example":                                  {"docs/examples/vm.yaml", "kind: Pod\n", []string{cli, road}},
		"the chart":                                   {"charts/stencil/values.yaml", "a: 2\n", []string{cli, road}},
		"an end-to-end test":                          {"test/e2e/cli/cli_test.go", checkout["test/e2e/cli/cli_test.go"] + "\nfunc TestB(t *testing.T) {}\n", []string{cli}},
		"what end-to-end tests are linked with":       {"test/product/product.go", "package product\n\nvar X = 1\n", []string{cli, road}},
		"a module file":                               {"go.mod", checkout["go.mod"] + "\n", []string{rego, cli, road, gen, webhooks}},
		"a file that does not belong to any of these": {"NOTES", "x", nil},
	} {
		t.Run(name, func(t *testing.T) {
			root := newCheckout(t)
			_, before := read(t, root)
			write(t, root, map[string]string{tc.file: tc.content})
			_, after := read(t, root)
			var got []string
			for _, key := range slices.Sorted(maps.Keys(after)) {
				if before[key].Digest != after[key].Digest {
					got = append(got, key)
				}
			}
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("changed inputs (-want +got):\n%s", diff)
			}
		})
	}
}

func choices(all []selection.Choice) map[string]string {
	found := map[string]string{}
	for _, each := range all {
		if each.Run {
			found[each.Key] = each.Why
		}
	}
	return found
}

// TestLandings follows a checkout over landings: what changed runs, the rest in turn, and all of it within four landings.
func TestLandings(t *testing.T) {
	root := newCheckout(t)
	record, err := selection.ReadRecord(root)
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	land := func(changed ...string) map[string]string {
		t.Helper()
		tree, packages := read(t, root)
		store := selection.Store{Folder: t.TempDir()} // A machine that has nothing.
		all := slices.Collect(maps.Values(packages))
		chosen := record.Choose(all, store, changed, tree)
		for _, each := range chosen {
			if !each.Run {
				continue
			}
			ran[each.Key] = record.Landing + 1
			if err := store.Passed(selection.Result{Key: each.Key, Digest: each.Digest, Landing: record.Landing + 1, Seconds: 10}); err != nil {
				t.Fatal(err)
			}
		}
		next, missing := record.Next(all, store, "commit")
		if len(missing) > 0 {
			t.Errorf("landing %d: %v have not passed", next.Landing, missing)
		}
		if err := next.Write(root); err != nil {
			t.Fatal(err)
		}
		if record, err = selection.ReadRecord(root); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(next, record); diff != "" {
			t.Errorf("the record changes when it is stored (-written +read):\n%s", diff)
		}
		return choices(chosen)
	}
	if got := land(); len(got) != 5 {
		t.Errorf("the first landing runs %v", got)
	}
	write(t, root, map[string]string{"webhooks/webhooks.go": checkout["webhooks/webhooks.go"] + "\nvar x = 1\n"})
	got := land("webhooks/webhooks.go")
	if got["gate test/e2e/road"] != "changed: webhooks" || got["gate webhooks"] != "changed: webhooks" || len(got) != 3 {
		t.Errorf("the second landing runs %v, want what changed and one more", got)
	}
	for range 6 {
		land()
		for key, landing := range ran {
			if record.Landing-landing > 3 {
				t.Errorf("%s ran with landing %d, and not until landing %d", key, landing, record.Landing)
			}
		}
	}
}

// TestAMachineKnowsItsResults has a second run on a machine leave out what the first ran.
func TestAMachineKnowsItsResults(t *testing.T) {
	root := newCheckout(t)
	tree, packages := read(t, root)
	all := slices.Collect(maps.Values(packages))
	store := selection.Store{Folder: t.TempDir()}
	var record selection.Record
	for _, each := range all[1:] {
		if err := store.Passed(selection.Result{Key: each.Key, Digest: each.Digest, Landing: 1, Flaky: map[string]string{"TestX": "/log"}}); err != nil {
			t.Fatal(err)
		}
	}
	got := choices(record.Choose(all, store, nil, tree))
	if len(got) != 1 || got[all[0].Key] == "" {
		t.Errorf("runs %v, want %s only", got, all[0].Key)
	}
	next, missing := record.Next(all, store, "commit")
	if len(missing) != 1 || len(next.Flaky) != 4 {
		t.Errorf("missing %v, flaky %v", missing, next.Flaky)
	}
	for range 10 {
		next, _ = next.Next(all, selection.Store{Folder: t.TempDir()}, "commit")
	}
	if len(next.Flaky) > 0 {
		t.Errorf("after ten landings flaky are %v", next.Flaky)
	}
}

func TestARecordThatCannotBeReadIsAnError(t *testing.T) {
	root := t.TempDir()
	for content, want := range map[string]string{
		"# x\nlanding 1\n":                      ":2: a line is `landing NUMBER COMMIT`",
		"passed gate rego 12 x 3\n":             `:1: strconv.Atoi: parsing "x": invalid syntax`,
		"landing 1 abc\nflaky gate a TestX 1 2": ":2: a line is",
	} {
		write(t, root, map[string]string{"test/passed.txt": content})
		if _, err := selection.ReadRecord(root); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", content, err, want)
		}
	}
}

func TestWhatIsExecutedBeyondTheStart(t *testing.T) {
	profile := func(lines ...string) selection.Blocks {
		t.Helper()
		name := filepath.Join(t.TempDir(), "profile")
		write(t, filepath.Dir(name), map[string]string{"profile": "mode: atomic\n" + strings.Join(lines, "\n")})
		blocks, err := selection.ReadProfile(name)
		if err != nil {
			t.Fatal(err)
		}
		return blocks
	}
	const prefix = "github.com/vmstencil/stencil/"
	started := profile(prefix+"rego/a.go:1.1,2.1 1 5", prefix+"webhooks/a.go:1.1,2.1 1 5")
	got := profile(prefix+"rego/a.go:1.1,2.1 1 9", prefix+"webhooks/a.go:1.1,2.1 1 9", prefix+"webhooks/a.go:3.1,4.1 1 1", prefix+"api/stencil/a.go:1.1,2.1 1 0", prefix+"oci/a.go:1.1,2.1 1 1").Beyond(started)
	if diff := cmp.Diff([]string{"oci", "webhooks"}, got); diff != "" {
		t.Errorf("beyond the start (-want +got):\n%s", diff)
	}
}
