package admission

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vmstencil/stencil/test/bench/load"
	"github.com/vmstencil/stencil/test/bench/machine"
)

// plan is the content of one table.
type plan struct {
	setups  []setup
	clients []int
	rounds  int
	// requests and limit bound the measurement of one set-up in one round.
	requests int
	limit    time.Duration
}

// cell holds the results of one set-up with one number of clients, a value for each round.
type cell struct {
	// p50, p95 and p99 are nanoseconds.
	p50, p95, p99 []float64
	// throughput is in requests per second, calls are those of webhooks for one request.
	throughput, calls []float64
	// cpu is the processor time that each process spent on one request, in nanoseconds.
	cpu map[string][]float64
}

// grid holds the cells by number of clients and name of the set-up.
type grid map[int]map[string]*cell

const (
	managerProcess = "stencil-manager"
	// clientProcess is this program, which simulates the clients.
	clientProcess = ""
)

// servers are all other processes that processor time is attributed to.
var servers = []string{"kube-apiserver", "etcd", managerProcess, floorName, "stencil-defaulter", "virt-api", "virt-controller"}

// rounds measures all set-ups in each round, for one number of clients after the other. Every other round goes through them
// backwards, so that none of them always comes first.
func (b *bench) rounds(ctx context.Context, p plan, progress func(format string, arguments ...any)) (grid, error) {
	result := grid{}
	for round := range p.rounds {
		progress("admission: %s and others, round %d of %d", p.setups[0].name, round+1, p.rounds)
		for _, clients := range p.clients {
			setups := slices.Clone(p.setups)
			if round%2 == 1 {
				slices.Reverse(setups)
			}
			for _, s := range setups {
				if err := b.measure(ctx, p, s, clients, result.cell(clients, s.name)); err != nil {
					return nil, err
				}
			}
		}
	}
	return result, b.know(ctx, []part{policies, webhooks})
}

func (b *bench) measure(ctx context.Context, p plan, s setup, clients int, into *cell) error {
	if err := b.know(ctx, s.parts); err != nil {
		return err
	}
	exercise := load.Load{Clients: clients, Warmup: max(50, p.requests/10), Requests: p.requests, Limit: p.limit}
	if err := exercise.Warm(ctx, b.send(s)); err != nil {
		return err
	}
	callsBefore, err := b.calls(ctx)
	if err != nil {
		return err
	}
	before, err := machine.CPU(servers...)
	if err != nil {
		return err
	}
	got, err := exercise.Measure(ctx, b.send(s))
	if err != nil {
		return err
	}
	after, err := machine.CPU(servers...)
	if err != nil {
		return err
	}
	callsAfter, err := b.calls(ctx)
	if err != nil {
		return err
	}
	count := len(got.Latencies)
	if count == 0 {
		return fmt.Errorf("no request was answered within %s (%s, %d clients)", p.limit, s.name, clients)
	}
	into.p50 = append(into.p50, got.Quantile(0.50))
	into.p95 = append(into.p95, got.Quantile(0.95))
	into.p99 = append(into.p99, got.Quantile(0.99))
	into.throughput = append(into.throughput, got.Throughput())
	into.calls = append(into.calls, float64(callsAfter-callsBefore)/float64(count))
	for _, name := range append([]string{clientProcess}, servers...) {
		into.cpu[name] = append(into.cpu[name], float64(after[name]-before[name])/float64(count))
	}
	return nil
}

// costs are the processor time of all servers for one request, by round.
func (c *cell) costs() []float64 {
	all := make([]float64, len(c.p50))
	for _, name := range servers {
		for round, used := range c.cpu[name] {
			all[round] += used
		}
	}
	return all
}

// cell returns the cell, a new one at first.
func (g grid) cell(clients int, setup string) *cell {
	if g[clients] == nil {
		g[clients] = map[string]*cell{}
	}
	if g[clients][setup] == nil {
		g[clients][setup] = &cell{cpu: map[string][]float64{}}
	}
	return g[clients][setup]
}
