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
	"github.com/vmstencil/stencil/test/bench/engine"
	"github.com/vmstencil/stencil/test/bench/policies"
	"github.com/vmstencil/stencil/test/bench/process"
	"github.com/vmstencil/stencil/test/bench/readiness"
	"github.com/vmstencil/stencil/test/bench/report"
)

// environment is what every benchmark is given.
type environment struct {
	// root is that of the checkout.
	root string
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

// benchmark is one of the parts that can be run alone.
type benchmark struct {
	name string
	run  func(context.Context, environment) (report.Section, error)
}

var benchmarks = []benchmark{
	{"engine", runEngine},
	{"admission", runAdmission},
	{"cache", runCache},
	{"audit", runAudit},
	{"approvals", runApprovals},
	{"policies", runPolicies},
	{"defaulting", runDefaulting},
	{"admission-defaulting", runAdmissionDefaulting},
	{"process", runProcess},
	{"readiness", runReadiness},
}

func names() []string {
	list := make([]string, len(benchmarks))
	for i, b := range benchmarks {
		list[i] = b.name
	}
	return list
}

func runEngine(ctx context.Context, e environment) (report.Section, error) {
	template, err := fedora(e)
	if err != nil {
		return report.Section{}, err
	}
	result, err := engine.Run(ctx, engine.Options{
		Template:   template,
		HelmEngine: filepath.Join(e.root, "test", "bench", "helmengine"),
		Rounds:     e.roundsOr(7),
		Time:       time.Second,
		Progress:   progress,
	})
	if err != nil {
		return report.Section{}, err
	}
	return result.Section(e.host), nil
}

func runAdmission(ctx context.Context, e environment) (report.Section, error) {
	result, err := admission.Run(ctx, admission.Options{
		Rounds:   e.roundsOr(9),
		Brief:    e.brief,
		Profile:  e.profile,
		Log:      os.Stderr,
		Progress: progress,
	})
	if err != nil {
		return report.Section{}, err
	}
	return result.Section(e.host), nil
}

func runApprovals(ctx context.Context, e environment) (report.Section, error) {
	result, err := approvals.Run(ctx, approvals.Options{
		Approvals:  1_000,
		Namespaces: 5_000,
		Rounds:     e.roundsOr(3),
		Requests:   1_200,
		Log:        os.Stderr,
		Progress:   progress,
	})
	if err != nil {
		return report.Section{}, err
	}
	return result.Section(e.host), nil
}

func runCache(ctx context.Context, e environment) (report.Section, error) {
	template, err := fedora(e)
	if err != nil {
		return report.Section{}, err
	}
	result, err := cache.Run(ctx, cache.Options{
		Golden:      template,
		Definitions: filepath.Join(e.root, "charts", "stencil", "files", "crds"),
		Templates:   10_000,
		Starts:      e.roundsOr(3),
		Profile:     e.profile,
		Log:         os.Stderr,
		Progress:    progress,
	})
	if err != nil {
		return report.Section{}, err
	}
	return result.Section(e.host), nil
}

func runPolicies(ctx context.Context, e environment) (report.Section, error) {
	result, err := policies.Run(ctx, policies.Options{
		Rounds:   e.roundsOr(7),
		Time:     3 * time.Second,
		Progress: progress,
	})
	if err != nil {
		return report.Section{}, err
	}
	return result.Section(e.host), nil
}

func runAudit(ctx context.Context, e environment) (report.Section, error) {
	template, err := fedora(e)
	if err != nil {
		return report.Section{}, err
	}
	result, err := audit.Run(ctx, audit.Options{
		Golden:      template,
		Definitions: filepath.Join(e.root, "charts", "stencil", "files", "crds"),
		Machines:    20_000,
		Rounds:      e.roundsOr(3),
		Time:        time.Second,
		Log:         os.Stderr,
		Progress:    progress,
	})
	if err != nil {
		return report.Section{}, err
	}
	return result.Section(e.host), nil
}

func runDefaulting(ctx context.Context, e environment) (report.Section, error) {
	result, err := defaulting.Run(ctx, defaulting.Options{
		Root:     e.root,
		Starts:   e.roundsOr(5),
		Defines:  40_000,
		Log:      os.Stderr,
		Progress: progress,
	})
	if err != nil {
		return report.Section{}, err
	}
	return result.Section(e.host), nil
}

func runAdmissionDefaulting(ctx context.Context, e environment) (report.Section, error) {
	result, err := admission.RunDefaulting(ctx, admission.Options{
		Rounds:   e.roundsOr(9),
		Profile:  e.profile,
		Log:      os.Stderr,
		Progress: progress,
	})
	if err != nil {
		return report.Section{}, err
	}
	return result.Section(e.host), nil
}

func runProcess(ctx context.Context, e environment) (report.Section, error) {
	template, err := fedora(e)
	if err != nil {
		return report.Section{}, err
	}
	result, err := process.Run(ctx, process.Options{
		Golden:    template,
		Templates: 1000,
		Rounds:    e.roundsOr(7),
		Profile:   e.profile,
		Log:       os.Stderr,
		Progress:  progress,
	})
	if err != nil {
		return report.Section{}, err
	}
	return result.Section(e.host), nil
}

func runReadiness(ctx context.Context, e environment) (report.Section, error) {
	result, err := readiness.Run(ctx, readiness.Options{
		Definitions: filepath.Join(e.root, "charts", "stencil", "files", "crds"),
		Templates:   10_000,
		DataSources: 200,
		Rounds:      e.roundsOr(10),
		Steady:      time.Minute,
		Log:         os.Stderr,
		Progress:    progress,
	})
	if err != nil {
		return report.Section{}, err
	}
	return result.Section(e.host), nil
}

// fedora reads the golden template.
func fedora(e environment) (*v1beta1.VirtualMachineTemplate, error) {
	content, err := os.ReadFile(filepath.Join(e.root, "docs", "examples", "golden", "fedora.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the golden template: %w", err)
	}
	template := &v1beta1.VirtualMachineTemplate{}
	if err := yaml.UnmarshalStrict(content, template); err != nil {
		return nil, fmt.Errorf("decoding the golden template: %w", err)
	}
	return template, nil
}
