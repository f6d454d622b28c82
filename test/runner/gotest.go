package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/vmstencil/stencil/test/release"
	"github.com/vmstencil/stencil/test/runner/selection"
)

// result is the result of the tests of one package.
type result struct {
	// folder of the package in the checkout.
	folder  string
	seconds float64
	failed  bool
	// cached is set if the Go command returned a cached result.
	cached bool
	// empty is set if the package has no tests.
	empty bool
	// broken are the tests that failed, and output is all that a package printed that failed.
	broken []string
	output string
	// flaky is set if the tests that failed passed when they were repeated; log is then the file with the output of the failure.
	flaky bool
	log   string
}

// event is what `go test -json` prints; see `go doc test2json` and `go help buildjson`.
type event struct {
	Action, Package, ImportPath, Output, Test string
	Elapsed                                   float64
	FailedBuild                               string
}

// flags decide about the results of a module's tests, beside their sources.
func (m module) flags() []string {
	flags := []string{"marked " + m.Marked}
	if m.Race {
		flags = append(flags, "race")
	}
	return flags
}

// goTest runs the tests of a module and returns the results of its packages. The output of failing packages goes to out, and one line for each
// package that passes; everything if the call is verbose.
func (m module) goTest(ctx context.Context, root string, environment []string, call runner, out io.Writer) ([]result, error) {
	// `make lint` runs vet, of all packages.
	arguments := []string{"test", "-json", "-vet=off", "-timeout=60m", "-tags=" + m.Tags}
	if call.run != "" {
		arguments = append(arguments, "-run="+call.run)
	} else if call.suite != "" {
		marked, err := m.selectMarked(root)
		if err != nil {
			return nil, err
		}
		arguments = append(arguments, marked...)
	}
	if m.Race {
		arguments = append(arguments, "-race")
	}
	if m.Parallel > 0 {
		arguments = append(arguments, fmt.Sprintf("-p=%d", m.Parallel))
	}
	if _, images := os.LookupEnv(release.Variable); m.Libvirt || m.QemuImg || images {
		// The test cache of the go command does not depend on the host's versions of libvirt, QEMU and qemu-img, or on the images.
		arguments = append(arguments, "-count=1")
	}
	packages := m.Packages
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	arguments = append(arguments, packages...)
	if call.update {
		arguments = append(arguments, "-update")
	}
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = filepath.Join(root, m.Path)
	command.Env = append(os.Environ(), environment...)
	// The flags of the programs' build, so that packages are compiled once for both. The race detector and libvirt need C.
	command.Env = append(command.Env, "GOFLAGS=-trimpath -gcflags=all=-dwarf=false")
	if !m.Race && !m.Cgo {
		command.Env = append(command.Env, "CGO_ENABLED=0")
	} else {
		command.Env = append(command.Env, "CGO_ENABLED=1")
	}
	command.Stderr = out
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting go test in %s: %w", m.Path, err)
	}
	results, readErr := read(output, call.verbose, out)
	err = command.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return results, fmt.Errorf("running go test in %s: %w", m.Path, err)
	}
	if readErr != nil {
		return results, readErr
	}
	// If the Go command itself fails, no package has failed.
	if err != nil && !anyFailed(results) {
		return results, fmt.Errorf("go test in %s: %w", m.Path, err)
	}
	return results, nil
}

func anyFailed(results []result) bool {
	for _, each := range results {
		if each.failed {
			return true
		}
	}
	return false
}

// read reads the events of a run.
func read(events io.Reader, verbose bool, out io.Writer) ([]result, error) {
	var results []result
	held := map[string]*strings.Builder{}
	builds := map[string]*strings.Builder{}
	cached := map[string]bool{}
	empty := map[string]bool{}
	broken := map[string][]string{}
	hold := func(in map[string]*strings.Builder, key, text string) {
		if in[key] == nil {
			in[key] = &strings.Builder{}
		}
		in[key].WriteString(text)
	}
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(out, "%s", line)
				continue
			}
			switch e.Action {
			case "build-output":
				hold(builds, e.ImportPath, e.Output)
			case "output":
				if e.Test == "" {
					cached[e.Package] = cached[e.Package] || strings.HasPrefix(e.Output, "ok ") && strings.Contains(e.Output, "(cached)")
					empty[e.Package] = empty[e.Package] || strings.Contains(e.Output, "[no test files]")
				}
				if verbose {
					fmt.Fprint(out, e.Output)
				} else {
					hold(held, e.Package, e.Output)
				}
			case "pass", "fail", "skip":
				if e.Test != "" {
					if e.Action == "fail" && !strings.Contains(e.Test, "/") {
						broken[e.Package] = append(broken[e.Package], e.Test)
					}
					continue
				}
				done := result{
					folder: selection.FolderOf(e.Package), seconds: e.Elapsed, failed: e.Action == "fail", cached: cached[e.Package], empty: e.Action == "skip" || empty[e.Package],
					broken: broken[e.Package],
				}
				if text := held[e.Package]; done.failed && text != nil {
					done.output = text.String()
				}
				results = append(results, done)
				if !verbose {
					report(out, done, held[e.Package])
				}
				if failed := builds[e.FailedBuild]; failed != nil {
					fmt.Fprint(out, failed.String())
				}
				delete(held, e.Package)
			}
		}
		if errors.Is(err, io.EOF) {
			return results, nil
		}
		if err != nil {
			return results, fmt.Errorf("reading the output of go test: %w", err)
		}
	}
}

// report prints what a package printed: everything when it failed, its last line when it passed.
func report(out io.Writer, done result, held *strings.Builder) {
	if held == nil || done.empty {
		return
	}
	text := held.String()
	if done.failed {
		fmt.Fprint(out, text)
		return
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	fmt.Fprintln(out, lines[len(lines)-1])
}
