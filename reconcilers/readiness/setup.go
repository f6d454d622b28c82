package readiness

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	templatecache "github.com/vmstencil/stencil/cache/templates"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/powers"
	"github.com/vmstencil/stencil/internal/turns"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
)

const (
	// syncDelay is how long to wait until the watches are synced at the start.
	syncDelay = 200 * time.Millisecond
	// workers is the number of templates that are processed concurrently.
	workers = 8
	// permissionInterval is how often the status of a template is determined again that reports on objects of other namespaces, or may not.
	permissionInterval = 10 * time.Minute
	// denialInterval is that after the first denial for a version of a template: users write it just after they were given the permission, and a denial from
	// before may still have been reused.
	denialInterval = permission.DenyTTL + time.Second
	// evaluationInterval is the time until the next check whether policies have been evaluated. No object changes if none applies.
	evaluationInterval = 2 * time.Second
	// approvalDelay combines changes of approvals in quick succession.
	approvalDelay = time.Second
	// The delays between attempts to write a status.
	shortestRetry, longestRetry = time.Second, time.Minute
	// sourceStartTimeout is the timeout for the sources of the controller to start; they wait for nothing.
	sourceStartTimeout = time.Hour
)

// SetupWithManager adds a Reconciler and its watches to the manager, which runs them on the leader. It returns what templates depend on.
func SetupWithManager(mgr manager.Manager, o Options) (*Dependents, error) {
	writer, err := statuswriter.New(o.Config)
	if err != nil {
		return nil, err
	}
	metrics, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	reviews, err := authorizationv1client.NewForConfig(powers.As(o.Config, ""))
	if err != nil {
		return nil, fmt.Errorf("making the client of permissions: %w", err)
	}
	// Many templates refer to the same objects: answers are reused for seconds.
	if o.Permissions, err = permission.New(permission.Options{Client: reviews}); err != nil {
		return nil, err
	}
	r := newReconciler(o, apiServer{writer}, metrics)
	queue := &requests{}
	r.again = queue.add
	found, err := sources.New(o.Config, mgr.GetLogger().WithName("readiness"), o.Populators, func(key sources.Key) {
		for _, template := range r.index.of(key) {
			queue.add(template)
		}
	})
	if err != nil {
		return nil, err
	}
	r.sources = found
	if err := mgr.Add(manager.RunnableFunc(found.Start)); err != nil {
		return nil, fmt.Errorf("adding the watches of what templates depend on: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		r.announcer.run(ctx, r.identify)
		return nil
	})); err != nil {
		return nil, fmt.Errorf("adding the events of template readiness: %w", err)
	}
	if o.DryRun {
		// The client's rate limit is far above that of dry runs.
		client, err := dynamic.NewForConfig(o.Config)
		if err != nil {
			return nil, fmt.Errorf("making the client of the dry runs of templates: %w", err)
		}
		r.dryRuns = newDryRuns(o.Templates, dryRunner{client}, metrics, r.options.Clock, queue.add)
		if err := mgr.Add(manager.RunnableFunc(r.dryRuns.Start)); err != nil {
			return nil, fmt.Errorf("adding the dry runs of templates: %w", err)
		}
	}
	one, err := controller.New("template-readiness", mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](shortestRetry, longestRetry),
		CacheSyncTimeout:        sourceStartTimeout,
		// At the start there is a request for every template: a queue with priorities takes three times the memory.
		NewQueue: turns.Queue,
	})
	if err != nil {
		return nil, fmt.Errorf("making the controller of template readiness: %w", err)
	}
	if err := one.Watch(source.Func(func(_ context.Context, into workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.flow(into)
		o.Templates.Listen(func(name types.NamespacedName, t *templatecache.Template) {
			if r.isNews(name, t) {
				queue.add(name)
			}
		})
		return nil
	})); err != nil {
		return nil, fmt.Errorf("adding the templates to the controller of template readiness: %w", err)
	}
	if o.Approvals != nil {
		if err := one.Watch(o.Approvals.ApprovalSource(approvalDelay)); err != nil {
			return nil, fmt.Errorf("adding the approvals to the controller of template readiness: %w", err)
		}
	}
	return &Dependents{r.index, func() bool { return o.Templates.Synced() && r.index.size() >= o.Templates.Len() }}, nil
}

// requests adds requests to the queue of the controller once that exists. Earlier requests are dropped: every template is requested at the
// start.
type requests struct {
	into atomic.Pointer[workqueue.TypedRateLimitingInterface[reconcile.Request]]
}

func (q *requests) flow(into workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	q.into.Store(&into)
}

func (q *requests) add(name types.NamespacedName) {
	if into := q.into.Load(); into != nil {
		(*into).Add(reconcile.Request{NamespacedName: name})
	}
}
