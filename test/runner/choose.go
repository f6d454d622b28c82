package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/test/product"
	"github.com/vmstencil/stencil/test/runner/selection"
)

// history has the results of earlier runs: those of this machine, and those that are committed.
type history struct {
	root   string
	record selection.Record
	store  selection.Store
	// packages of the suite by its calls, whose results are stored: an index of modules, and a folder.
	packages []map[string]selection.Package
	// budget returns the seconds that a package may take. choose needs it.
	budget func(folder string) float64
}

func newHistory(root string) (*history, error) {
	record, err := selection.ReadRecord(root)
	if err != nil {
		return nil, err
	}
	folder, err := product.CacheFolder("passed")
	if err != nil {
		return nil, err
	}
	return &history{root: root, record: record, store: selection.Store{Folder: folder}}, nil
}

// list reads the packages of a suite.
func (h *history) list(ctx context.Context, name string, wanted suite, tools []string) error {
	tree, err := selection.ReadTree(ctx, h.root)
	if err != nil {
		return err
	}
	return h.listIn(ctx, tree, name, wanted, tools)
}

func (h *history) listIn(ctx context.Context, tree *selection.Tree, name string, wanted suite, tools []string) error {
	executed, err := selection.ReadExecuted(h.root)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	h.packages = nil
	for _, each := range wanted.Modules {
		listed, err := tree.Packages(ctx, selection.Call{Suite: name, Module: each.Path, Packages: each.Packages, Tags: each.Tags, Flags: each.flags()}, executed, tools)
		if err != nil {
			return err
		}
		byFolder := map[string]selection.Package{}
		for _, one := range listed {
			if seen[one.Key] {
				return fmt.Errorf("test/suites.yaml: suite %s names %s in two calls", name, one.Folder)
			}
			seen[one.Key], byFolder[one.Folder] = true, one
		}
		h.packages = append(h.packages, byFolder)
	}
	return nil
}

// all are the packages of all calls.
func (h *history) all() []selection.Package {
	var all []selection.Package
	for _, each := range h.packages {
		for _, one := range each {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b selection.Package) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// choose leaves out what a change cannot have affected, and prints why.
func (h *history) choose(ctx context.Context, name string, wanted suite, tools []string, out io.Writer) (suite, error) {
	tree, err := selection.ReadTree(ctx, h.root)
	if err != nil {
		return suite{}, err
	}
	if err := h.listIn(ctx, tree, name, wanted, tools); err != nil {
		return suite{}, err
	}
	choices := h.record.Choose(h.all(), h.store, h.changed(ctx), tree)
	run := map[string]bool{}
	left := map[string][]string{}
	for _, each := range choices {
		if each.Run {
			run[each.Key] = true
			fmt.Fprintf(out, "runs      %s: %s\n", each.Folder, each.Why)
		} else {
			left[each.Why] = append(left[each.Why], each.Folder)
		}
	}
	for why, folders := range left {
		fmt.Fprintf(out, "left out, %s: %s\n", why, strings.Join(folders, ", "))
	}
	chosen := wanted
	chosen.Modules = nil
	var packages []map[string]selection.Package
	for i, each := range wanted.Modules {
		var folders []string
		for folder, one := range h.packages[i] {
			if run[one.Key] {
				folders = append(folders, folder)
			}
		}
		if len(folders) == 0 {
			continue
		}
		// The longest first, so that the last end together.
		slices.SortFunc(folders, func(a, b string) int {
			if d := h.seconds(i, b) - h.seconds(i, a); d != 0 {
				return int(d)
			}
			return strings.Compare(a, b)
		})
		each.Packages = nil
		for _, folder := range folders {
			relative, err := filepath.Rel(each.Path, folder)
			if err != nil {
				return suite{}, err
			}
			each.Packages = append(each.Packages, "./"+relative)
		}
		chosen.Modules, packages = append(chosen.Modules, each), append(packages, h.packages[i])
	}
	h.packages = packages
	return chosen, nil
}

// seconds returns how long a package took, or else half of what it may take: budgets have room for a slow machine.
func (h *history) seconds(call int, folder string) float64 {
	if took := h.record.Passed[h.packages[call][folder].Key].Seconds; took > 0 {
		return took
	}
	return h.budget(folder) / 2
}

// changed are the files that differ from the commit of the record; none if it is unknown here.
func (h *history) changed(ctx context.Context) []string {
	var files []string
	for _, arguments := range [][]string{{"diff", "--name-only", h.record.Commit}, {"ls-files", "--others", "--exclude-standard"}} {
		command := exec.CommandContext(ctx, "git", arguments...)
		command.Dir = h.root
		output, err := command.Output()
		if err != nil {
			return nil
		}
		files = append(files, strings.Fields(string(output))...)
	}
	return files
}

// keep stores the results of a call that passed.
func (h *history) keep(call int, results []result) error {
	for _, each := range results {
		one, known := h.packages[call][each.folder]
		if !known || each.failed {
			continue
		}
		passed := selection.Result{Key: one.Key, Digest: one.Digest, Landing: h.record.Landing + 1, Seconds: each.seconds}
		if before, stored := h.store.Of(one.Key, one.Digest); stored && each.cached {
			passed = before // Nothing ran.
		}
		for _, test := range each.broken {
			if passed.Flaky == nil {
				passed.Flaky = map[string]string{}
			}
			passed.Flaky[test] = each.log
		}
		if err := h.store.Passed(passed); err != nil {
			return err
		}
	}
	return nil
}

// runsCount is in how many runs a test may be flaky once.
const runsCount = 10

// again records the flaky tests of a run of a suite, and returns a problem for each that was flaky in the nine runs before or with the last landings.
func (h *history) again(name string, results []result) ([]string, error) {
	file := filepath.Join(h.store.Folder, "runs-"+name)
	content, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	if len(lines) >= runsCount {
		lines = lines[len(lines)-runsCount+1:]
	}
	before := strings.Fields(strings.Join(lines, " "))
	for _, each := range h.record.Flaky {
		before = append(before, strings.TrimPrefix(each.Key, name+" ")+":"+each.Test)
	}
	var now, problems []string
	for _, each := range results {
		for _, test := range each.broken {
			if !each.flaky {
				continue
			}
			label := each.folder + ":" + test
			if slices.Contains(before, label) {
				problems = append(problems, fmt.Sprintf("%s in %s was flaky twice in %d runs; see %s", test, each.folder, runsCount, each.log))
			}
			now = append(now, label)
		}
	}
	lines = append(lines, "run "+strings.Join(now, " "))
	return problems, os.WriteFile(file, []byte(strings.TrimSpace(strings.Join(lines, "\n"))+"\n"), 0o644)
}

// repeat runs the failed tests of each package once more. Those that pass now are flaky: the package has passed, and the log of the failure is stored.
func (h *history) repeat(ctx context.Context, m module, results []result, environment []string, call runner, out io.Writer) error {
	for i := range results {
		failed := &results[i]
		if !failed.failed || len(failed.broken) == 0 || call.update {
			continue
		}
		relative, err := filepath.Rel(m.Path, failed.folder)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "== once more: %s in %s\n", strings.Join(failed.broken, ", "), failed.folder)
		once, again := m, call
		once.Packages = []string{"./" + relative}
		again.run = "^(" + strings.Join(failed.broken, "|") + ")$"
		repeated, err := once.goTest(ctx, h.root, environment, again, out)
		if err != nil || len(repeated) != 1 || repeated[0].failed {
			continue
		}
		log, err := os.CreateTemp(h.store.Folder, "flaky-"+strings.ReplaceAll(failed.folder, "/", "_")+"-*.log")
		if err != nil {
			return err
		}
		_, err = log.WriteString(failed.output)
		if err := errors.Join(err, log.Close()); err != nil {
			return err
		}
		failed.failed, failed.flaky, failed.log = false, true, log.Name()
	}
	return nil
}

// write records what has passed with the present inputs in test/passed.txt.
func (h *history) write(ctx context.Context, read *plan, tools []string, out io.Writer) error {
	var all []selection.Package
	for _, name := range recordedSuites {
		wanted, err := read.suite(name)
		if err != nil {
			return err
		}
		if err := h.list(ctx, name, wanted, tools); err != nil {
			return err
		}
		all = append(all, h.all()...)
	}
	modules, err := h.linted(ctx)
	if err != nil {
		return err
	}
	all = append(all, modules...)
	command := exec.CommandContext(ctx, "git", "rev-parse", "HEAD")
	command.Dir = h.root
	commit, err := command.Output()
	if err != nil {
		return fmt.Errorf("reading the commit: %w", err)
	}
	next, missing := h.record.Next(all, h.store, strings.TrimSpace(string(commit)))
	for _, each := range missing {
		fmt.Fprintf(out, "has not passed with the present inputs: %s\n", each)
	}
	fmt.Fprintf(out, "landing %d: %d packages have passed\n", next.Landing, len(next.Passed))
	return next.Write(h.root)
}

// recordedSuites of continuous integration.
var recordedSuites = []string{"gate", "full"}
