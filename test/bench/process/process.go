package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/test/bench/catalogue"
	"github.com/vmstencil/stencil/test/bench/load"
	"github.com/vmstencil/stencil/test/bench/machine"
	"github.com/vmstencil/stencil/test/bench/profiles"
	"github.com/vmstencil/stencil/test/platform"
)

const (
	// crowd is how many clients process at once.
	crowd = 32
	// group of the aggregated API.
	group = "subresources.template.kubevirt.io"
)

// Options are the sizes and the extent of the measurement.
type Options struct {
	// Golden is what the templates are variants of.
	Golden *v1beta1.VirtualMachineTemplate
	// Templates is how many there are.
	Templates int
	// Rounds is how often each load is measured; the results are medians. At least 1.
	Rounds int
	// Profile is a folder for Go profiles of the server under load, empty for none.
	Profile string
	// Log receives the cluster's log, Progress the steps of the benchmark.
	Log      io.Writer
	Progress func(format string, arguments ...any)
}

// Result is what Run has measured.
type Result struct {
	templates, rounds int
	// processed are the rounds of the crowd, alone those of one client; idle and idleAlone are theirs against a server that does
	// nothing.
	processed, alone, idle, idleAlone []load.Sample
	// plain and created take turns: one client creates a complete VirtualMachine, and has one created from a template.
	plain, created []load.Sample
	// listed are the rounds of one client that lists all templates.
	listed []load.Sample
	// memory of the server at the end.
	memory machine.Memory
}

// Run starts a cluster with the templates and measures.
func Run(ctx context.Context, options Options) (result *Result, err error) {
	source, arguments, err := profiles.Requested(options.Profile)
	if err != nil {
		return nil, err
	}
	stencil, err := platform.Start(ctx, platform.Options{APIServer: true, APIServerArgs: arguments, Log: options.Log})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stencil.Stop()) }()
	options.Progress("process: creating %d templates", options.Templates)
	if _, err := catalogue.Create(ctx, stencil.Plane.AdminConfig(), options.Golden, options.Templates); err != nil {
		return nil, err
	}
	if err := govern(ctx, stencil); err != nil {
		return nil, err
	}
	clients, err := newClients(ctx, stencil)
	if err != nil {
		return nil, err
	}
	answer, complete, err := clients.complete(ctx)
	if err != nil {
		return nil, err
	}
	idler, err := newIdler(ctx, stencil.Plane, clients.user, answer)
	if err != nil {
		return nil, err
	}
	defer idler.close()
	result = &Result{templates: options.Templates, rounds: options.Rounds}
	for round := range options.Rounds {
		options.Progress("process: round %d of %d", round+1, options.Rounds)
		for _, one := range []struct {
			load load.Load
			send load.Send
			into *[]load.Sample
		}{
			{load.Load{Clients: crowd, Warmup: 2000, Requests: 10_000, Limit: 20 * time.Second}, clients.process, &result.processed},
			{load.Load{Clients: crowd, Warmup: 2000, Requests: 10_000, Limit: 20 * time.Second}, clients.idle(idler), &result.idle},
			{load.Load{Clients: 1, Warmup: 100, Requests: 1000, Limit: 10 * time.Second}, clients.process, &result.alone},
			{load.Load{Clients: 1, Warmup: 100, Requests: 1000, Limit: 10 * time.Second}, clients.idle(idler), &result.idleAlone},
			{load.Load{Clients: 1, Warmup: 100, Requests: 1000, Limit: 10 * time.Second}, clients.plain(complete), &result.plain},
			{load.Load{Clients: 1, Warmup: 100, Requests: 1000, Limit: 10 * time.Second}, clients.create, &result.created},
			{load.Load{Clients: 1, Warmup: 10, Requests: 100, Limit: 20 * time.Second}, clients.list(options.Templates), &result.listed},
		} {
			if err := one.load.Warm(ctx, one.send); err != nil {
				return nil, err
			}
			sample, err := one.load.Measure(ctx, one.send)
			if err != nil {
				return nil, err
			}
			*one.into = append(*one.into, sample)
		}
	}
	if result.memory, err = machine.MemoryOf(stencil.APIServer.PID()); err != nil || source == nil {
		return result, err
	}
	options.Progress("process: profiling the server")
	return result, clients.profile(ctx, source)
}

// profileTime is how long the server is profiled.
const profileTime = 10 * time.Second

// profile takes profiles of the server while the crowd processes. It is no part of the measurements.
func (c *clients) profile(ctx context.Context, source *profiles.Source) error {
	done := make(chan error, 1)
	go func() {
		_, err := load.Load{Clients: crowd, Requests: 1 << 30, Limit: profileTime + time.Second}.Measure(ctx, c.process)
		done <- err
	}()
	err := source.CPU(ctx, profileTime, "process-cpu.pprof")
	if err = errors.Join(err, <-done); err != nil {
		return err
	}
	return source.Allocations(ctx, "process-allocs.pprof")
}

// rights are the permissions of the requesting user.
func rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{group}, Resources: []string{"virtualmachinetemplates/process", "virtualmachinetemplates/create"}, Verbs: []string{"create"}},
		{APIGroups: []string{"kubevirt.io"}, Resources: []string{"virtualmachines"}, Verbs: []string{"create"}},
	}
}

// complete is an answer to process, and the VirtualMachine in it, which a plain creation sends.
func (c *clients) complete(ctx context.Context) (answer, vm []byte, err error) {
	if answer, err = c.post(ctx, 0, c.template("process"), "", parameters); err != nil {
		return nil, nil, fmt.Errorf("processing a template: %w", err)
	}
	var processed struct {
		VirtualMachine json.RawMessage `json:"virtualMachine"`
	}
	if err := json.Unmarshal(answer, &processed); err != nil || len(processed.VirtualMachine) == 0 {
		return nil, nil, fmt.Errorf("the template was not processed: %w: %s", err, answer)
	}
	return answer, processed.VirtualMachine, nil
}
