// Command runner runs a suite of test/suites.yaml, or some packages of end-to-end tests: `make test`, `make test-full` and `make e2e` call it.
//
// It builds Stencil's programs, so that the results of tests follow them (see package product), shares one platform between the packages that request
// it, and prints how many seconds each package took. It fails when a test fails, and when the suite exceeds its budget.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/vmstencil/stencil/test/platform"
	"github.com/vmstencil/stencil/test/product"
)

func main() {
	var r runner
	flag.StringVar(&r.suite, "suite", "", "run this suite of test/suites.yaml")
	flag.StringVar(&r.run, "run", "", "run only tests whose names match this regular expression")
	flag.StringVar(&r.only, "only", "", "run only this package of the suite, by its folder in the module test")
	flag.BoolVar(&r.verbose, "v", false, "print everything that tests print")
	flag.BoolVar(&r.update, "update", false, "have the tests write their golden files")
	flag.BoolVar(&r.changed, "changed", false, "leave out packages that a change cannot have affected, see docs/testing.md")
	record := flag.Bool("record", false, "run nothing: write what has passed with the present inputs into test/passed.txt")
	measure := flag.Bool("measure", false, "write into test/executed.txt what packages of Stencil the end-to-end packages of continuous integration execute")
	lint := flag.Bool("lint", false, "run golangci-lint in the modules that have not passed with the present sources")
	flag.BoolVar(&r.images, "images", false, "run Stencil's servers from the images of a release, which is built before; needs root")
	flag.Parse()
	r.packages = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	work := r.main
	switch {
	case *record:
		work = r.record
	case *measure:
		work = r.measure
	case *lint:
		work = r.lint
	}
	err := work(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\ntests:", err)
		os.Exit(1)
	}
}

// runner is one call of the command.
type runner struct {
	suite, run string
	// only is a package of the suite, the others do not run.
	only     string
	packages []string
	// verbose prints everything that tests print; update has them write their golden files.
	verbose, update bool
	// changed leaves out what a change cannot have affected.
	changed bool
	// images runs Stencil's servers from the images of a release, as suites with that property do.
	images bool
}

func (r runner) main(ctx context.Context, out io.Writer) error {
	root, err := product.Root()
	if err != nil {
		return err
	}
	plan, err := readPlan(root)
	if err != nil {
		return err
	}
	wanted := only(r.packages)
	if r.suite != "" {
		if len(r.packages) > 0 {
			return errors.New("give either a suite or packages")
		}
		if wanted, err = plan.suite(r.suite); err != nil {
			return err
		}
		if r.only != "" {
			wanted = wanted.of("./" + r.only)
		}
	} else if len(r.packages) == 0 {
		return errors.New("no packages given: make e2e PACKAGES=./e2e/road")
	}
	load := startLoad(plan.CalibrationSeconds)
	tools, err := toolVersions(ctx, root)
	if err != nil {
		return err
	}
	digest, err := product.Build(ctx, root, tools...)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "product %.12s built (%.0f s)\n", digest, time.Since(load.began).Seconds())
	known, err := newHistory(root)
	if err != nil {
		return err
	}
	known.budget = plan.budget
	// A part of a package, or one that runs from images, is no result of the package.
	if r.suite != "" && r.run == "" && !r.update && !wanted.Images && !r.images {
		if r.changed {
			wanted, err = known.choose(ctx, r.suite, wanted, tools, out)
		} else {
			err = known.list(ctx, r.suite, wanted, tools)
		}
		if err != nil {
			return err
		}
	}
	results, err := r.goTest(ctx, root, digest, wanted, known, out)
	done := summary{results: results, seconds: time.Since(load.began).Seconds(), stretch: load.stretch(), budget: wanted.Seconds, plan: plan}
	if r.suite != "" && r.only == "" {
		var problem error
		done.again, problem = known.again(r.suite, results)
		err = errors.Join(err, problem)
	}
	done.print(out)
	problems := done.problems()
	if err != nil {
		problems = append(problems, err.Error())
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "\n       "))
	}
	return nil
}

// record writes what has passed with the present inputs.
func (r runner) record(ctx context.Context, out io.Writer) error {
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
	known, err := newHistory(root)
	if err != nil {
		return err
	}
	return known.write(ctx, read, tools, out)
}

// goTest runs the modules one after the other, with a platform that packages share.
func (r runner) goTest(ctx context.Context, root, digest string, wanted suite, known *history, out io.Writer) (results []result, err error) {
	folder, err := os.MkdirTemp("", "stencil-tests-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for the run: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	log, err := os.Create(filepath.Join(folder, "platform.log"))
	if err != nil {
		return nil, fmt.Errorf("creating a log: %w", err)
	}
	defer log.Close()
	environment := []string{product.Variable + "=" + digest}
	// The shared platform uses the same programs as the tests.
	if err := os.Setenv(product.Variable, digest); err != nil {
		return nil, err
	}
	if wanted.Images || r.images {
		stop, err := shareRelease(ctx, root, folder, out)
		if err != nil {
			return nil, err
		}
		defer stop()
	}
	sharing, err := platform.Share(context.WithoutCancel(ctx), folder, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sharing.Stop()) }()
	environment = append(environment, platform.SharedVariable+"="+sharing.Path)
	for i, each := range wanted.Modules {
		fmt.Fprintf(out, "== go test in %s\n", each.Path)
		some, err := each.goTest(ctx, root, environment, r, out)
		if err == nil {
			err = known.repeat(ctx, each, some, environment, r, out)
		}
		results = append(results, some...)
		if err == nil && len(known.packages) > 0 {
			err = known.keep(i, some)
		}
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// toolVersions are names and versions of all that tests run beside Stencil's own programs.
func toolVersions(ctx context.Context, root string) ([]string, error) {
	list, err := exec.CommandContext(ctx, filepath.Join(root, "hack", "tool"), "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("listing the versions of tools: %w", err)
	}
	return strings.Split(strings.TrimSpace(string(list)), "\n"), nil
}
