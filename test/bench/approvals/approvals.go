package approvals

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/test/bench/load"
	"github.com/vmstencil/stencil/test/bench/machine"
	"github.com/vmstencil/stencil/test/platform"
)

// Options are the sizes and the extent of the measurement.
type Options struct {
	// Approvals is how many there are beside those of the first measurement, Namespaces how many namespaces exist.
	Approvals, Namespaces int
	// Rounds is how often both numbers of approvals are measured in turn. At least 1.
	Rounds int
	// Requests is how many of each write are measured in a round.
	Requests int
	// Log receives progress of the cluster, Progress that of the benchmark.
	Log      io.Writer
	Progress func(format string, arguments ...any)
}

// Result is what Run has measured.
type Result struct {
	options Options
	// kinds are the names of the writes, in their order.
	kinds []string
	// few and many are the API server's processor time for one write of each kind, by round.
	few, many map[string][]time.Duration
	// bare is how long a client took that patched all namespaces, active how long an approval took that selects them.
	bare, active time.Duration
	// writes is how many patches of namespaces the API server counted for the approval.
	writes int
	// memory is that of the manager at the end.
	memory machine.Memory
}

// clients send at once, and patch namespaces at once: as many as the manager.
const (
	clients  = 4
	patchers = 16
	limit    = 10 * time.Minute
)

// Run measures.
func Run(ctx context.Context, options Options) (result *Result, err error) {
	stencil, err := platform.Start(ctx, platform.Options{Log: options.Log})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stencil.Stop()) }()
	config := rest.CopyConfig(stencil.Plane.AdminConfig())
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: controller, Groups: []string{user.SystemPrivilegedGroup}}
	exempt, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	c := &cluster{stencil: stencil, client: client, controller: exempt, options: options}
	options.Progress("approvals: creating %d namespaces", options.Namespaces)
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	result = &Result{options: options, kinds: c.kinds(), few: map[string][]time.Duration{}, many: map[string][]time.Duration{}}
	for round := range options.Rounds {
		options.Progress("approvals: one approval, round %d of %d", round+1, options.Rounds)
		if err := c.measure(ctx, result.few); err != nil {
			return nil, err
		}
		options.Progress("approvals: %d approvals, round %d of %d", options.Approvals, round+1, options.Rounds)
		if err := c.addApprovals(ctx); err != nil {
			return nil, err
		}
		if err := c.measure(ctx, result.many); err != nil {
			return nil, err
		}
		if round+1 < options.Rounds {
			if err := c.removeApprovals(ctx); err != nil {
				return nil, err
			}
		}
	}
	options.Progress("approvals: an approval of all namespaces")
	if result.bare, err = c.patchAll(ctx); err != nil {
		return nil, err
	}
	if result.active, result.writes, err = c.activate(ctx); err != nil {
		return nil, err
	}
	result.memory, err = machine.MemoryOf(stencil.Manager.PID())
	return result, err
}

// measure takes the API server's processor time for each kind of write. All are sent once before the first is measured: the work that the API server
// does once after many approvals were written, and for the first requests of a kind, is no cost of one write.
func (c *cluster) measure(ctx context.Context, into map[string][]time.Duration) error {
	each := load.Load{Clients: clients, Warmup: c.options.Requests / 3, Requests: c.options.Requests, Limit: limit}
	for _, write := range c.writes() {
		if err := each.Warm(ctx, write.send); err != nil {
			return fmt.Errorf("%s: %w", write.name, err)
		}
	}
	for _, write := range c.writes() {
		if err := awaitQuiet(ctx); err != nil {
			return err
		}
		before, err := serverCPU()
		if err != nil {
			return err
		}
		sample, err := each.Measure(ctx, write.send)
		if err != nil {
			return fmt.Errorf("%s: %w", write.name, err)
		}
		after, err := serverCPU()
		if err != nil {
			return err
		}
		into[write.name] = append(into[write.name], (after-before)/time.Duration(len(sample.Latencies)))
	}
	return nil
}

// awaitQuiet returns when the API server is nearly idle: the manager's writes after a change of approvals are no cost of one write.
func awaitQuiet(ctx context.Context) error {
	const interval, calm = time.Second, 5
	quiet := 0
	before, err := serverCPU()
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, interval, limit, false, func(context.Context) (bool, error) {
		now, err := serverCPU()
		if now-before > interval/10 {
			quiet = 0
		} else {
			quiet++
		}
		before = now
		return quiet == calm, err
	})
}

func serverCPU() (time.Duration, error) {
	used, err := machine.CPU("kube-apiserver")
	return used["kube-apiserver"], err
}
