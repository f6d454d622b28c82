package policystatus

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// DefaultInterval is the least time between two writes of what a replica has counted of a policy.
const DefaultInterval = time.Minute

// farewell is how long a replica that ends may take to say so.
const farewell = 5 * time.Second

// look is how often a replica looks whether there is something to write.
const look = 5 * time.Second

// ReporterOptions are what a Reporter needs.
type ReporterOptions struct {
	// Name is that of the replica.
	Name     string
	Policies Policies
	// Client writes the statuses.
	Client client.SubResourceClientConstructor
	Logger logr.Logger
	// Interval is the least time between two writes of what was counted of a policy. Default: DefaultInterval.
	Interval time.Duration
	// Clock says how old an entry is. Default: the real one.
	Clock clock.WithTicker
}

// Reporter writes what one replica has to say. It is a manager.Runnable that runs on every replica.
type Reporter struct{ options ReporterOptions }

// NewReporter returns a Reporter that has not started.
func NewReporter(options ReporterOptions) *Reporter {
	if options.Interval <= 0 {
		options.Interval = DefaultInterval
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Reporter{options}
}

// NeedLeaderElection says that every replica reports.
func (r *Reporter) NeedLeaderElection() bool { return false }

// Start reports until ctx ends, and then takes back what it has reported.
func (r *Reporter) Start(ctx context.Context) error {
	defer r.leave(ctx)
	ticker := r.options.Clock.NewTicker(look)
	defer ticker.Stop()
	for {
		stirred := r.options.Policies.Stirred()
		r.report(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			continue
		case <-stirred:
		}
		// What stirs once stirs again, such as this replica's own writes coming back.
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		case <-r.options.Clock.After(reaction / 4):
		}
	}
}

// leave takes the replica's entries away: the sums are about those that run. What that does not reach in time, the leader
// prunes later.
func (r *Reporter) leave(ended context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ended), farewell)
	defer cancel()
	for _, state := range r.options.Policies.States() {
		if storedEntry(&state.Object.Status, r.options.Name) == nil {
			continue
		}
		if err := apply(ctx, r.options.Client, state.Object, replicaManager(r.options.Name), &v1alpha1.VirtualMachinePolicyStatus{}); err != nil {
			r.options.Logger.V(1).Info("what was counted of the policies stays in their statuses", "why", err.Error())
			return
		}
	}
}

// report writes what is due.
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
		if err := apply(ctx, r.options.Client, state.Object, replicaManager(r.options.Name), status); err != nil && ctx.Err() == nil {
			r.options.Logger.Error(err, "what was counted of a policy is not written", "policy", state.Object.Name)
		}
	}
}
