package policies

import (
	"context"
	"fmt"
	"time"

	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/test/bench/measurement"
)

// Options are the extent of the measurement.
type Options struct {
	// Rounds is how often everything is measured; the result is the median. At least 1.
	Rounds int
	// Time of each measurement of a round.
	Time time.Duration
	// KyvernoEngine is the folder of the module that measures Kyverno's engine.
	KyvernoEngine string
	// Progress receives the steps of the benchmark.
	Progress func(format string, arguments ...any)
}

// Numbers of policies that a request is subject to.
var Numbers = []int{1, 20, 100}

// Many is how many policies are compiled at a time.
const Many = 1000

// Result holds one measurement per round.
type Result struct {
	// MachineBytes is how large the VM is, as JSON.
	MachineBytes int
	// Requests is what one request costs, by the number of policies.
	Requests map[int]measurement.Series
	// Gatekeeper is what one review costs with as many Constraints.
	Gatekeeper map[int]measurement.Series
	// Kyverno is what one review costs with as many ValidatingPolicies.
	Kyverno map[int]measurement.Series
	// Bare is what one request costs with as many prepared queries of OPA.
	Bare map[int]measurement.Series
	// Findings is how many of so many policies deny the VM.
	Findings map[int]int
	// Compile is the compile time of Many policies, Held the memory that they then use.
	Compile []time.Duration
	Held    []int64
	// Still and Exchanged are the latencies of requests while no policy is exchanged, and while one after the other is.
	Still, Exchanged []latencies
	// Exchanges is how many were made in all.
	Exchanges int
	// Hostile is by the name of the hostile policy.
	Hostile []Hostility
}

// Run measures.
func Run(ctx context.Context, options Options) (*Result, error) {
	compiler, err := rego.NewCompiler()
	if err != nil {
		return nil, fmt.Errorf("making a compiler: %w", err)
	}
	policies, err := readLibrary()
	if err != nil {
		return nil, err
	}
	vm, err := readVM()
	if err != nil {
		return nil, err
	}
	other, err := newGatekeeper(ctx)
	if err != nil {
		return nil, err
	}
	defer other.remove()
	kyverno, err := newKyverno(ctx, options.KyvernoEngine)
	if err != nil {
		return nil, err
	}
	defer kyverno.remove()
	result := &Result{
		MachineBytes: vm.bytes,
		Requests:     map[int]measurement.Series{},
		Gatekeeper:   map[int]measurement.Series{},
		Kyverno:      map[int]measurement.Series{},
		Bare:         map[int]measurement.Series{},
		Findings:     map[int]int{},
	}
	for round := range options.Rounds {
		options.Progress("policies: round %d of %d", round+1, options.Rounds)
		if err := result.round(ctx, options, compiler, policies, vm, other, kyverno); err != nil {
			return nil, err
		}
	}
	options.Progress("policies: those that are written to do harm")
	result.Hostile, err = resist(ctx, compiler, policies, vm)
	return result, err
}

func (r *Result) round(ctx context.Context, options Options, compiler *rego.Compiler, policies library, vm *subject, other *gatekeeper, kyverno *kyverno) error {
	for _, number := range Numbers {
		cost, findings, err := request(ctx, options.Time, compiler, policies, vm, number)
		if err != nil {
			return err
		}
		r.Requests[number], r.Findings[number] = append(r.Requests[number], cost), findings
		if cost, err = bareRequest(ctx, options.Time, policies, vm, number, findings); err != nil {
			return err
		}
		r.Bare[number] = append(r.Bare[number], cost)
		if cost, err = other.review(ctx, number); err != nil {
			return err
		}
		r.Gatekeeper[number] = append(r.Gatekeeper[number], cost)
		if cost, err = kyverno.review(ctx, options.Time, number); err != nil {
			return err
		}
		r.Kyverno[number] = append(r.Kyverno[number], cost)
	}
	took, held, err := compileMany(ctx, compiler, policies)
	if err != nil {
		return err
	}
	r.Compile, r.Held = append(r.Compile, took), append(r.Held, held)

	still, exchanged, exchanges, err := underLoad(ctx, options.Time, compiler, policies, vm)
	if err != nil {
		return err
	}
	r.Still, r.Exchanged, r.Exchanges = append(r.Still, still), append(r.Exchanged, exchanged), r.Exchanges+exchanges
	return nil
}
