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
	// Rounds is how often many approvals are measured, each time between two measurements of one. At least 1.
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
	// few and many are measured with one approval and with many, in turn: few has one value more, before the first and after the last of many.
	few, many costs
	// bare is how long a client took that patched all namespaces, active how long an approval took that selects them.
	bare, active time.Duration
	// writes is how many patches of namespaces the API server counted for the approval.
	writes int
	// memory of the manager at the end.
	memory machine.Memory
}

// costs are what the API server did, by round.
type costs struct {
	// perWrite is its processor time for one write of each kind.
	perWrite map[string][]time.Duration
	// others is how many requests that are not part of the load it answered meanwhile, for each kind.
	others map[string][]float64
	// idle is its processor time in a second without load, idleRequests the requests in that second.
	idle         []time.Duration
	idleRequests []float64
}

func newCosts() costs {
	return costs{perWrite: map[string][]time.Duration{}, others: map[string][]float64{}}
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
	result = &Result{options: options, kinds: c.kinds(), few: newCosts(), many: newCosts()}
	options.Progress("approvals: one approval")
	if err := c.measure(ctx, &result.few); err != nil {
		return nil, err
	}
	for round := range options.Rounds {
		options.Progress("approvals: %d approvals, round %d of %d", options.Approvals, round+1, options.Rounds)
		if err := c.addApprovals(ctx); err != nil {
			return nil, err
		}
		if err := c.measure(ctx, &result.many); err != nil {
			return nil, err
		}
		options.Progress("approvals: one approval again, round %d of %d", round+1, options.Rounds)
		if err := c.removeApprovals(ctx); err != nil {
			return nil, err
		}
		if err := c.measure(ctx, &result.few); err != nil {
			return nil, err
		}
	}
	// The last part is measured beside many approvals as well.
	if err := c.addApprovals(ctx); err != nil {
		return nil, err
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
func (c *cluster) measure(ctx context.Context, into *costs) error {
	each := load.Load{Clients: clients, Warmup: c.options.Requests / 3, Requests: c.options.Requests, Limit: limit}
	for _, write := range c.writes() {
		if err := each.Warm(ctx, write.send); err != nil {
			return fmt.Errorf("%s: %w", write.name, err)
		}
	}
	if err := awaitQuiet(ctx); err != nil {
		return err
	}
	const pause = 10 * time.Second
	used, answered, err := c.spent(ctx, func() error { return sleep(ctx, pause) })
	if err != nil {
		return err
	}
	into.idle = append(into.idle, used/time.Duration(pause.Seconds()))
	into.idleRequests = append(into.idleRequests, answered/pause.Seconds())
	for _, write := range c.writes() {
		if err := awaitQuiet(ctx); err != nil {
			return err
		}
		sent := 0
		used, answered, err := c.spent(ctx, func() error {
			sample, err := each.Measure(ctx, write.send)
			sent = len(sample.Latencies)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", write.name, err)
		}
		into.perWrite[write.name] = append(into.perWrite[write.name], used/time.Duration(sent))
		into.others[write.name] = append(into.others[write.name], answered-float64(sent))
		c.options.Progress("approvals: %s: %s, %.0f other requests", write.name, used/time.Duration(sent), answered-float64(sent))
	}
	return nil
}

// spent returns how much processor time the API server used while do ran, and how many requests it answered.
func (c *cluster) spent(ctx context.Context, do func() error) (time.Duration, float64, error) {
	answered, err := c.requests(ctx)
	if err != nil {
		return 0, 0, err
	}
	used, err := serverCPU()
	if err != nil {
		return 0, 0, err
	}
	if err := do(); err != nil {
		return 0, 0, err
	}
	now, err := serverCPU()
	if err != nil {
		return 0, 0, err
	}
	after, err := c.requests(ctx)
	// The first of the two readings is counted by the second.
	return now - used, after - answered - 1, err
}

func sleep(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
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
