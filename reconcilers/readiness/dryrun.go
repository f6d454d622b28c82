package readiness

import (
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/internal/turns"
	"github.com/vmstencil/stencil/policies/sample"
	"github.com/vmstencil/stencil/reconcilers/internal/dryrun"
)

const (
	// dryRunsPerSecond and dryRunsAtOnce limit the load on the API server and on the webhooks of others.
	dryRunsPerSecond, dryRunsAtOnce = 10, 20
	// dryRunRetry and longestDryRunRetry limit the delay until a failed dry run is repeated.
	dryRunRetry, longestDryRunRetry = 5 * time.Second, 5 * time.Minute
	// dryRunLife is how long a result is valid: KubeVirt is upgraded, and webhooks are added and removed.
	dryRunLife = 24 * time.Hour
)

// dryRunResult is the result of a dry run, as a condition.
type dryRunResult struct {
	status          metav1.ConditionStatus
	reason, message string
}

// subject is what the result of a dry run depends on.
type subject struct {
	uid        types.UID
	generation int64
	// sizes are the states of the instance type and the preference.
	sizes string
}

type answer struct {
	dryRunResult
	subject
	at time.Time
}

// vmCreator creates VirtualMachines in dry runs.
type vmCreator interface {
	create(ctx context.Context, machine *unstructured.Unstructured) error
}

// dryRuns performs dry runs in the background, ten per second, and caches their results.
type dryRuns struct {
	templates Templates
	creator   vmCreator
	metrics   *metrics
	clock     clock.WithTicker
	limiter   flowcontrol.RateLimiter
	queue     workqueue.TypedRateLimitingInterface[types.NamespacedName]
	// done is called when there is a new result.
	done func(types.NamespacedName)

	mutex     sync.Mutex
	answers   map[types.NamespacedName]answer
	requested map[types.NamespacedName]subject
}

func newDryRuns(templates Templates, creator vmCreator, m *metrics, clock clock.WithTicker, done func(types.NamespacedName)) *dryRuns {
	return &dryRuns{
		templates: templates, creator: creator, metrics: m, clock: clock, done: done,
		limiter: flowcontrol.NewTokenBucketRateLimiter(dryRunsPerSecond, dryRunsAtOnce),
		queue: turns.Names("readiness-dry-runs",
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](dryRunRetry, longestDryRunRetry)),
		answers: map[types.NamespacedName]answer{}, requested: map[types.NamespacedName]subject{},
	}
}

// result returns the cached result for a template, and requests a dry run if that is missing or outdated. After a start, the condition
// that the previous leader wrote for the same generation is used until there is a new result.
func (d *dryRuns) result(name types.NamespacedName, t *templatecache.Template, sizes string) *dryRunResult {
	about := subject{t.UID, t.Generation, sizes}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.requested[name] = about
	cached, is := d.answers[name]
	if is && cached.subject == about && d.clock.Since(cached.at) < dryRunLife {
		return &cached.dryRunResult
	}
	d.queue.Add(name)
	if is && cached.uid == about.uid && cached.generation == about.generation {
		return &cached.dryRunResult
	}
	stored := meta.FindStatusCondition(t.Conditions(), v1beta1.ConditionDryRunSucceeded)
	if !is && stored != nil && stored.ObservedGeneration == t.Generation {
		return &dryRunResult{stored.Status, stored.Reason, stored.Message}
	}
	return &dryRunResult{metav1.ConditionUnknown, v1beta1.ReasonNotTried, "its turn has not come yet"}
}

func (d *dryRuns) forget(name types.NamespacedName) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	delete(d.answers, name)
	delete(d.requested, name)
}

// Start performs dry runs until ctx ends. The manager calls it on the leader.
func (d *dryRuns) Start(ctx context.Context) error {
	context.AfterFunc(ctx, d.queue.ShutDown)
	for {
		name, ended := d.queue.Get()
		if ended {
			return nil
		}
		d.next(ctx, name)
		d.queue.Done(name)
	}
}

// next performs one dry run, unless it is no longer necessary.
func (d *dryRuns) next(ctx context.Context, name types.NamespacedName) {
	t := d.templates.Get(name.Namespace, name.Name)
	d.mutex.Lock()
	about, requested := d.requested[name]
	cached, is := d.answers[name]
	d.mutex.Unlock()
	fresh := is && cached.subject == about && d.clock.Since(cached.at) < dryRunLife && cached.reason != v1beta1.ReasonNotTried
	if t == nil || !requested || fresh || t.UID != about.uid || t.Generation != about.generation {
		d.queue.Forget(name)
		return
	}
	if err := d.limiter.Wait(ctx); err != nil {
		return
	}
	found := d.try(ctx, t)
	if ctx.Err() != nil {
		return
	}
	d.metrics.dryRuns.WithLabelValues(strings.ToLower(found.reason)).Inc()
	d.mutex.Lock()
	if d.requested[name] == about {
		d.answers[name] = answer{found, about, d.clock.Now()}
	}
	d.mutex.Unlock()
	if found.reason == v1beta1.ReasonNotTried {
		d.queue.AddRateLimited(name)
	} else {
		d.queue.Forget(name)
		// No event reports a new webhook, so the dry run is repeated.
		d.queue.AddAfter(name, dryRunLife)
	}
	d.done(name)
}

// try creates the VM of a template's defaults in a dry run.
func (d *dryRuns) try(ctx context.Context, t *templatecache.Template) dryRunResult {
	made, problem := sample.Plain(t)
	if problem != nil {
		return dryRunResult{metav1.ConditionUnknown, problem.Reason, problem.Message}
	}
	ctx, cancel := context.WithTimeout(ctx, dryrun.Timeout)
	defer cancel()
	return resultOf(d.creator.create(ctx, dryrun.VM(made.Object)), made.Secrets)
}

// resultOf returns the result for an answer of the API server. Values of sensitive parameters are removed: an error may quote them.
func resultOf(err error, secrets []string) dryRunResult {
	result, text := dryrun.Evaluate(err, secrets)
	text = excerpt.Of(text, maximumMessage)
	switch result {
	case dryrun.Accepted:
		return dryRunResult{metav1.ConditionTrue, v1beta1.ReasonAccepted, "the VirtualMachine of the template's defaults was accepted in a dry run"}
	case dryrun.Denied:
		return dryRunResult{metav1.ConditionFalse, v1beta1.ReasonRefused, "the VirtualMachine of the template's defaults is denied: " + text}
	default:
		return dryRunResult{metav1.ConditionUnknown, v1beta1.ReasonNotTried, "the dry run could not be made: " + text}
	}
}

// dryRunner creates VMs in dry runs only.
type dryRunner struct{ client dynamic.Interface }

func (d dryRunner) create(ctx context.Context, vm *unstructured.Unstructured) error {
	return dryrun.Create(ctx, d.client, vm, fieldManager)
}
