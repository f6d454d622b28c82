// Command bench runs Stencil's benchmarks, prints their results beside the project's targets and, with --write, records them in
// docs/performance.md. `make bench` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/vmstencil/stencil/test/bench/machine"
	"github.com/vmstencil/stencil/test/bench/report"
	"github.com/vmstencil/stencil/test/install"
)

func main() {
	var s settings
	s.register(flag.CommandLine)
	flag.Parse()
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	write   bool
	only    string
	runs    int
	brief   bool
	profile string
}

func (s *settings) register(flags *flag.FlagSet) {
	flags.BoolVar(&s.write, "write", false, "record the results in docs/performance.md")
	flags.StringVar(&s.only, "only", "", "benchmarks to run, separated by commas: "+strings.Join(names(), ", ")+" (default all)")
	flags.IntVar(&s.runs, "runs", 0, "rounds of each benchmark (default: what docs/performance.md is made with)")
	flags.BoolVar(&s.brief, "brief", false, "of admission, only what its ratios to the floor are taken from; of readiness-flip, 2 000 templates; of revisions, 2 000 copies")
	flags.StringVar(&s.profile, "profile", "", "folder for Go profiles of stencil-manager and stencil-apiserver, taken during a round of their own")
}

// chosen returns the benchmarks to run.
func (s *settings) chosen() ([]benchmark, error) {
	if s.only == "" {
		return benchmarks, nil
	}
	var chosen []benchmark
	for _, name := range strings.Split(s.only, ",") {
		i := slices.IndexFunc(benchmarks, func(b benchmark) bool { return b.name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("there is no benchmark %q: choose from %s", name, strings.Join(names(), ", "))
		}
		chosen = append(chosen, benchmarks[i])
	}
	return chosen, nil
}

func run(s settings) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	chosen, err := s.chosen()
	if err != nil {
		return err
	}
	if s.brief && s.write {
		return errors.New("what --brief measures is not all that docs/performance.md shows: leave out --write")
	}
	root, err := checkout()
	if err != nil {
		return err
	}
	golden, err := fedora(root)
	if err != nil {
		return err
	}
	missed := false
	for _, b := range chosen {
		section, err := measured(ctx, b, environment{root: root, golden: golden, rounds: s.runs, brief: s.brief, profile: s.profile, host: machine.Class(time.Now())})
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		section.Text(os.Stdout)
		missed = missed || slices.ContainsFunc(section.Targets, func(t report.Target) bool { return !t.Met })
		if s.write {
			if err := report.Write(filepath.Join(root, "docs", "performance.md"), section); err != nil {
				return err
			}
		}
	}
	if missed {
		return errors.New("a target was missed")
	}
	return nil
}

// disturbed is the share of the host's processor time from which on other processes are a disturbance.
const disturbed = 0.05

// measured runs a benchmark and adds to its section how quiet the host was.
func measured(ctx context.Context, b benchmark, e environment) (report.Section, error) {
	others, err := machine.WatchOthers()
	if err != nil {
		return report.Section{}, err
	}
	result, err := b.run(ctx, e)
	if err != nil {
		return report.Section{}, err
	}
	section := result.Section(e.host)
	share, err := others.Share()
	if err != nil {
		return report.Section{}, err
	}
	section.Context += fmt.Sprintf("; other processes used %.0f %% of the machine", 100*share)
	if share > disturbed {
		progress("other processes used %.0f %% of the machine while this was measured, and the results show it", 100*share)
	}
	return section, nil
}

// checkout is the root of the repository.
func checkout() (string, error) {
	chart, err := install.ChartFolder()
	if err != nil {
		return "", err
	}
	return filepath.Dir(filepath.Dir(chart)), nil
}

func progress(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", arguments...)
}
