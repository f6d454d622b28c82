package exceptionstatus

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policycache "github.com/vmstencil/stencil/cache/policies"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/reconcilers/internal/single"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
)

// Exceptions returns the exceptions; the cache of package cache/exceptions implements it.
type Exceptions interface {
	Synced() bool
	Set() *policyset.Exceptions
	// Objects returns the exceptions with their status, which must not be modified.
	Objects() []*v1alpha1.PolicyException
	// ObjectsChanged returns a channel that is closed when the result of Objects changes.
	ObjectsChanged() <-chan struct{}
}

// Policies returns the policies; the cache of package cache/policies implements it.
type Policies interface {
	Synced() bool
	States() []policycache.State
	StatesChanged() <-chan struct{}
}

// Statuses writes statuses; statuswriter.Writer implements it.
type Statuses interface {
	Apply(ctx context.Context, object statuswriter.Object, owner string, status any) error
}

// Options are what a Reconciler needs.
type Options struct {
	Exceptions Exceptions
	Policies   Policies
	Statuses   Statuses
	// Clock decides which exceptions have ended. Default: the real clock.
	Clock clock.PassiveClock
}

// Reconciler writes the conditions. It has a single request.
type Reconciler struct{ options Options }

// New returns a Reconciler.
func New(options Options) *Reconciler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Reconciler{options}
}

const (
	// syncDelay is how long to wait for the caches at the start.
	syncDelay = 100 * time.Millisecond
	// delay combines changes in quick succession.
	delay = 100 * time.Millisecond
)

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !r.options.Exceptions.Synced() || !r.options.Policies.Synced() {
		return reconcile.Result{RequeueAfter: syncDelay}, nil
	}
	policies := map[string]bool{}
	for _, state := range r.options.Policies.States() {
		policies[state.Object.Name] = true
	}
	now := r.options.Clock.Now()
	var failures []error
	for _, object := range r.options.Exceptions.Objects() {
		status, changed := statusOf(object, func(policy string) bool { return policies[policy] }, now)
		if changed {
			failures = append(failures, r.options.Statuses.Apply(ctx, statuswriter.Exception(object), v1alpha1.FieldManagerExceptionStatus, status))
		}
	}
	if err := errors.Join(failures...); err != nil {
		return reconcile.Result{}, err
	}
	next := r.options.Exceptions.Set().Next(now)
	if next.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(next.Sub(r.options.Clock.Now()), time.Millisecond)}, nil
}

// all is the single request.
var all = reconcile.Request{NamespacedName: types.NamespacedName{Name: "exceptions"}}

// SetupWithManager adds the reconciler to the manager, which runs it on the leader.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	return single.Add(mgr, single.Controller{
		Name: "exception-status", Reconciler: r, ShortestRetry: 500 * time.Millisecond, LongestRetry: 30 * time.Second,
	}, single.AtStart(all), single.OnChange(all, delay, r.options.Exceptions.ObjectsChanged), single.OnChange(all, delay, r.options.Policies.StatesChanged))
}
