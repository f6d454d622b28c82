package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/test/bench/admission"
	"github.com/vmstencil/stencil/test/bench/approvals"
	"github.com/vmstencil/stencil/test/bench/audit"
	"github.com/vmstencil/stencil/test/bench/cache"
	"github.com/vmstencil/stencil/test/bench/defaulting"
	"github.com/vmstencil/stencil/test/bench/disks"
	"github.com/vmstencil/stencil/test/bench/engine"
	"github.com/vmstencil/stencil/test/bench/policies"
	"github.com/vmstencil/stencil/test/bench/process"
	"github.com/vmstencil/stencil/test/bench/readiness"
	"github.com/vmstencil/stencil/test/bench/report"
	"github.com/vmstencil/stencil/test/bench/revisions"
	"github.com/vmstencil/stencil/test/bench/transfers"
)

// environment is what every benchmark is given.
type environment struct {
	// root of the checkout.
	root string
	// golden is the golden Fedora template.
	golden *v1beta1.VirtualMachineTemplate
	// rounds is how often to measure, 0 for the benchmark's own number.
	rounds int
	// brief leaves parts out; see the flag.
	brief bool
	// profile is the folder for profiles, or empty.
	profile string
	// host describes the host.
	host string
}

func (e environment) roundsOr(usual int) int {
	if e.rounds > 0 {
		return e.rounds
	}
	return usual
}

// definitions is the folder with the CRDs of Stencil.
func (e environment) definitions() string {
	return filepath.Join(e.root, "charts", "stencil", "files", "crds")
}

// result is what a benchmark has measured.
type result interface {
	Section(context string) report.Section
}

// benchmark is one of the parts that can be run alone.
type benchmark struct {
	name string
	run  func(context.Context, environment) (result, error)
}

var benchmarks = []benchmark{
	{"engine", func(ctx context.Context, e environment) (result, error) {
		return engine.Run(ctx, engine.Options{
			Template: e.golden, HelmEngine: filepath.Join(e.root, "test", "bench", "helmengine"),
			Rounds: e.roundsOr(7), Time: time.Second, Progress: progress,
		})
	}},
	{"admission", func(ctx context.Context, e environment) (result, error) {
		return admission.Run(ctx, admission.Options{
			Rounds: e.roundsOr(9), Brief: e.brief, Profile: e.profile, Log: os.Stderr, Progress: progress,
		})
	}},
	{"cache", func(ctx context.Context, e environment) (result, error) {
		return cache.Run(ctx, cache.Options{
			Golden: e.golden, Definitions: e.definitions(), Templates: 10_000,
			Starts: e.roundsOr(3), Profile: e.profile, Log: os.Stderr, Progress: progress,
		})
	}},
	{"audit", func(ctx context.Context, e environment) (result, error) {
		return audit.Run(ctx, audit.Options{
			Golden: e.golden, Definitions: e.definitions(), Machines: 20_000,
			Rounds: e.roundsOr(3), Time: time.Second, Log: os.Stderr, Progress: progress,
		})
	}},
	{"approvals", func(ctx context.Context, e environment) (result, error) {
		return approvals.Run(ctx, approvals.Options{
			Approvals: 1_000, Namespaces: 5_000, Requests: 1_200,
			Rounds: e.roundsOr(3), Log: os.Stderr, Progress: progress,
		})
	}},
	{"policies", func(ctx context.Context, e environment) (result, error) {
		return policies.Run(ctx, policies.Options{
			KyvernoEngine: filepath.Join(e.root, "test", "bench", "kyvernoengine"),
			Rounds:        e.roundsOr(7), Time: 3 * time.Second, Progress: progress,
		})
	}},
	{"defaulting", func(ctx context.Context, e environment) (result, error) {
		return defaulting.Run(ctx, defaulting.Options{
			Root: e.root, Defines: 40_000, Starts: e.roundsOr(5), Log: os.Stderr, Progress: progress,
		})
	}},
	{"admission-defaulting", func(ctx context.Context, e environment) (result, error) {
		return admission.RunDefaulting(ctx, admission.Options{
			Rounds: e.roundsOr(9), Profile: e.profile, Log: os.Stderr, Progress: progress,
		})
	}},
	{"process", func(ctx context.Context, e environment) (result, error) {
		return process.Run(ctx, process.Options{
			Golden: e.golden, Templates: 1000,
			Rounds: e.roundsOr(7), Profile: e.profile, Log: os.Stderr, Progress: progress,
		})
	}},
	{"readiness", func(ctx context.Context, e environment) (result, error) {
		return readiness.Run(ctx, readiness.Options{
			Definitions: e.definitions(), Templates: 10_000, DataSources: 200,
			Rounds: e.roundsOr(10), Steady: time.Minute, Log: os.Stderr, Progress: progress,
		})
	}},
	{"readiness-flip", func(ctx context.Context, e environment) (result, error) {
		templates := 10_000
		if e.brief {
			templates = 2_000
		}
		return readiness.RunFlip(ctx, readiness.Options{
			Definitions: e.definitions(), Templates: templates, Rounds: e.roundsOr(3), Log: os.Stderr, Progress: progress,
		})
	}},
	{"revisions", func(ctx context.Context, e environment) (result, error) {
		copies := 20_000
		if e.brief {
			copies = 2_000
		}
		return revisions.Run(ctx, revisions.Options{Revisions: copies, Log: os.Stderr, Progress: progress})
	}},
	{"disks", func(ctx context.Context, e environment) (result, error) {
		return disks.Run(ctx, disks.Options{Module: filepath.Join(e.root, "test"), Bytes: 256 << 20, Rounds: e.roundsOr(7), Progress: progress})
	}},
	{"transfers", func(ctx context.Context, e environment) (result, error) {
		return transfers.Run(ctx, transfers.Options{Module: filepath.Join(e.root, "test"), Bytes: 256 << 20, Rounds: e.roundsOr(7), Progress: progress})
	}},
}

func names() []string {
	list := make([]string, len(benchmarks))
	for i, b := range benchmarks {
		list[i] = b.name
	}
	return list
}

// fedora reads the golden template.
func fedora(root string) (*v1beta1.VirtualMachineTemplate, error) {
	content, err := os.ReadFile(filepath.Join(root, "docs", "examples", "golden", "fedora.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the golden template: %w", err)
	}
	template := &v1beta1.VirtualMachineTemplate{}
	if err := yaml.UnmarshalStrict(content, template); err != nil {
		return nil, fmt.Errorf("decoding the golden template: %w", err)
	}
	return template, nil
}
