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
	"sync"
	"time"

	"github.com/vmstencil/stencil/test/platform"
	"github.com/vmstencil/stencil/test/product"
	"github.com/vmstencil/stencil/test/runner/selection"
)

// idle is how long Stencil's programs run for the part that starting them executes, with the first round of what they do periodically.
const idle = 30 * time.Second

// measurement is one package of end-to-end tests that is measured, in a run of its own.
type measurement struct {
	suite, folder string
	blocks        selection.Blocks
	seconds       float64
	err           error
}

// measure runs each package of end-to-end tests alone, with programs that count what they execute, and writes test/executed.txt. Packages that passed
// are results like those of a suite.
func (r runner) measure(ctx context.Context, out io.Writer) (err error) {
	root, err := product.Root()
	if err != nil {
		return err
	}
	read, err := readPlan(root)
	if err != nil {
		return err
	}
	tools, err := toolVersions(ctx, root)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "stencil-measure-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := os.Setenv(product.CoverVariable, "yes"); err != nil {
		return err
	}
	started, err := measureStart(ctx, root, folder, tools)
	if err != nil {
		return fmt.Errorf("measuring the start of the programs: %w", err)
	}
	fmt.Fprintf(out, "the start of the programs executes %d packages\n", len(started))

	tree, err := selection.ReadTree(ctx, root)
	if err != nil {
		return err
	}
	var all []*measurement
	for _, name := range recordedSuites {
		wanted, err := read.suite(name)
		if err != nil {
			return err
		}
		for _, each := range wanted.Modules {
			if each.Path != "test" {
				continue
			}
			listed, err := tree.Packages(ctx, selection.Call{Suite: name, Module: each.Path, Packages: each.Packages, Flags: each.flags()}, nil, tools)
			if err != nil {
				return err
			}
			for _, one := range listed {
				if one.StartsPrograms {
					all = append(all, &measurement{suite: name, folder: one.Folder})
				}
			}
		}
	}
	// The longest first, so that the last two end together.
	slices.SortStableFunc(all, func(a, b *measurement) int { return int(read.budget(b.folder) - read.budget(a.folder)) })
	queue := make(chan *measurement, len(all))
	for _, each := range all {
		queue <- each
	}
	close(queue)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for each := range queue {
				each.run(ctx, root, folder, out)
			}
		})
	}
	workers.Wait()

	executed := selection.Executed{}
	for _, each := range all {
		err = errors.Join(err, each.err)
		if each.err != nil {
			continue // Not measured, so that it executes everything.
		}
		executed[each.folder] = append(executed[each.folder], each.blocks.Beyond(started)...)
		slices.Sort(executed[each.folder])
		executed[each.folder] = slices.Compact(executed[each.folder])
	}
	return errors.Join(err, executed.Write(root), r.kept(ctx, root, read, tools, all))
}

// kept stores the packages that passed as results of their suites: their inputs are others with the measurement.
func (r runner) kept(ctx context.Context, root string, read *plan, tools []string, all []*measurement) error {
	known, err := newHistory(root)
	if err != nil {
		return err
	}
	passed := map[string]*measurement{}
	for _, each := range all {
		if each.err == nil {
			passed[each.suite+" "+each.folder] = each
		}
	}
	for _, name := range recordedSuites {
		wanted, err := read.suite(name)
		if err != nil {
			return err
		}
		if err := known.list(ctx, name, wanted, tools); err != nil {
			return err
		}
		for _, each := range known.all() {
			if of := passed[each.Key]; of != nil {
				err = errors.Join(err, known.store.Passed(selection.Result{Key: each.Key, Digest: each.Digest, Landing: known.record.Landing + 1, Seconds: of.seconds}))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// measureStart returns what the programs execute that run and have nothing to do.
func measureStart(ctx context.Context, root, folder string, tools []string) (blocks selection.Blocks, err error) {
	counts := filepath.Join(folder, "start")
	if err := errors.Join(os.Mkdir(counts, 0o755), os.Chmod(counts, 0o777), os.Setenv("GOCOVERDIR", counts)); err != nil {
		return nil, err
	}
	digest, err := product.Build(ctx, root, tools...)
	if err != nil {
		return nil, err
	}
	if err := os.Setenv(product.Variable, digest); err != nil {
		return nil, err
	}
	options := platform.SharedOptions
	options.CDI, options.Transfers = true, true
	running, err := platform.Start(context.WithoutCancel(ctx), options)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
	case <-time.After(idle):
	}
	if err := running.Stop(); err != nil {
		return nil, err
	}
	return counted(ctx, counts)
}

// run runs the tests of the package in a runner of its own.
func (m *measurement) run(ctx context.Context, root, folder string, out io.Writer) {
	counts := filepath.Join(folder, m.suite+"-"+strings.ReplaceAll(m.folder, "/", "_"))
	if m.err = errors.Join(os.Mkdir(counts, 0o755), os.Chmod(counts, 0o777)); m.err != nil {
		return
	}
	self, err := os.Executable()
	if err != nil {
		m.err = err
		return
	}
	began := time.Now()
	command := exec.CommandContext(ctx, self, "-suite="+m.suite, "-only="+strings.TrimPrefix(m.folder, "test/"))
	command.Dir = root
	command.Env = append(os.Environ(), "GOCOVERDIR="+counts)
	output, err := command.CombinedOutput()
	m.seconds = time.Since(began).Seconds()
	if err != nil {
		m.err = fmt.Errorf("%s: %w\n%s", m.folder, err, output)
	} else {
		m.blocks, m.err = counted(ctx, counts)
	}
	if m.err != nil {
		fmt.Fprintln(out, m.err)
		return
	}
	fmt.Fprintf(out, "%-28s %4.0f s\n", m.folder, m.seconds)
	// Some are large.
	m.err = os.RemoveAll(counts)
}

// counted reads the counts that programs have written below a folder.
func counted(ctx context.Context, folder string) (selection.Blocks, error) {
	folders := []string{folder}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, each := range entries {
		if each.IsDir() {
			folders = append(folders, filepath.Join(folder, each.Name()))
		}
	}
	profile := filepath.Join(folder, "profile.txt")
	output, err := exec.CommandContext(ctx, "go", "tool", "covdata", "textfmt", "-i="+strings.Join(folders, ","), "-o="+profile).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("reading what programs executed: %w\n%s", err, output)
	}
	return selection.ReadProfile(profile)
}
