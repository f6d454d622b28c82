package policystatus

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// DefaultInterval is the minimum time between two writes of a replica's counts for a policy.
const DefaultInterval = time.Minute

// farewell is the timeout for a replica to remove its entries when it ends.
const farewell = 5 * time.Second

// checkInterval is how often a replica checks whether there is something to write.
const checkInterval = 5 * time.Second

// ReporterOptions are what a Reporter needs.
type ReporterOptions struct {
	// Name of the replica.
	Name     string
	Policies Policies
	// Client writes the statuses.
	Client client.SubResourceClientConstructor
	Logger logr.Logger
	// Interval is the minimum time between two writes of the counts for a policy. Default: DefaultInterval.
	Interval time.Duration
	// Clock is used to compute the age of entries. Default: the real clock.
	Clock clock.WithTicker
}

// Reporter writes the entries of one replica. It is a manager.Runnable that runs on every replica.
type Reporter struct {
	options ReporterOptions
	// stored has the names of the policies with an entry that this replica wrote. The watched object can be older than that.
	stored map[string]bool
}

// NewReporter returns a Reporter that has not started.
func NewReporter(options ReporterOptions) *Reporter {
	if options.Interval <= 0 {
		options.Interval = DefaultInterval
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Reporter{options: options, stored: map[string]bool{}}
}

// NeedLeaderElection returns false: every replica reports.
func (r *Reporter) NeedLeaderElection() bool { return false }

// Start reports until ctx ends, and then removes its entries.
func (r *Reporter) Start(ctx context.Context) error {
	defer r.leave(ctx)
	ticker := r.options.Clock.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		stirred := r.options.Policies.StatesChanged()
		r.report(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			continue
		case <-stirred:
		}
		// Changes come in series, such as the watch events of this replica's own writes. Wait to combine them.
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		case <-r.options.Clock.After(reaction / 4):
		}
	}
}

// leave removes the replica's entries, so that the sums are about running replicas. The leader prunes entries that are not removed in time.
func (r *Reporter) leave(ended context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ended), farewell)
	defer cancel()
	for _, state := range r.options.Policies.States() {
		if !r.stored[state.Object.Name] && storedEntry(&state.Object.Status, r.options.Name) == nil {
			continue
		}
		if err := apply(ctx, r.options.Client, state.Object, replicaManager(r.options.Name), &v1alpha1.VirtualMachinePolicyStatus{}); err != nil {
			r.options.Logger.V(1).Info("the counters of the policies remain in their statuses", "why", err.Error())
			return
		}
	}
}

// report writes the entries that are due.
func (r *Reporter) report(ctx context.Context) {
	if !r.options.Policies.Synced() {
		return
	}
	for _, state := range r.options.Policies.States() {
		now := r.options.Clock.Now()
		next := entryOf(&state, r.options.Name)
		if !due(storedEntry(&state.Object.Status, r.options.Name), next, now, r.options.Interval) {
			continue
		}
		status := &v1alpha1.VirtualMachinePolicyStatus{}
		if next != nil {
			status.Replicas = []v1alpha1.PolicyReplica{stamped(next, now)}
		}
		// Also if the write fails: the API server can have stored it.
		if next != nil {
			r.stored[state.Object.Name] = true
		}
		if err := apply(ctx, r.options.Client, state.Object, replicaManager(r.options.Name), status); err != nil && ctx.Err() == nil {
			r.options.Logger.Error(err, "the counters of a policy could not be written", "policy", state.Object.Name)
		}
	}
}
