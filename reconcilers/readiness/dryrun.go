package readiness

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/reconcilers/internal/sample"
)

const (
	// dryRunsPerSecond bounds what dry runs ask of the API server and of the webhooks of others.
	dryRunsPerSecond, dryRunsAtOnce = 2, 10
	// dryRunDeadline is how long one may take: webhooks may take up to 30 s each, and several are asked.
	dryRunDeadline = time.Minute
	// dryRunRetry is when one is tried again that could not be made, up to a few minutes.
	dryRunRetry, longestDryRunRetry = 5 * time.Second, 5 * time.Minute
	// dryRunLife is how long an answer is believed: KubeVirt is upgraded, and webhooks come and go.
	dryRunLife = 24 * time.Hour
)

// verdict is what came of a dry run.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// subject is what a verdict is about.
type subject struct {
	uid        types.UID
	generation int64
	// sizes are the states of what KubeVirt reads to judge a machine.
	sizes string
}

type answer struct {
	verdict
	subject
	at time.Time
}

// machines creates VirtualMachines in dry runs.
type machines interface {
	create(ctx context.Context, machine *unstructured.Unstructured) error
}

// dryRuns makes dry runs in the background, a few in a second, and remembers what came of them.
type dryRuns struct {
	templates Templates
	machines  machines
	metrics   *metrics
	clock     clock.WithTicker
	limiter   flowcontrol.RateLimiter
	queue     workqueue.TypedRateLimitingInterface[types.NamespacedName]
	// done is called when there is a new answer.
	done func(types.NamespacedName)

	mutex   sync.Mutex
	answers map[types.NamespacedName]answer
	wanted  map[types.NamespacedName]subject
}

func newDryRuns(templates Templates, machines machines, m *metrics, clock clock.WithTicker, done func(types.NamespacedName)) *dryRuns {
	return &dryRuns{
		templates: templates, machines: machines, metrics: m, clock: clock, done: done,
		limiter: flowcontrol.NewTokenBucketRateLimiter(dryRunsPerSecond, dryRunsAtOnce),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](dryRunRetry, longestDryRunRetry)),
		answers: map[types.NamespacedName]answer{}, wanted: map[types.NamespacedName]subject{},
	}
}

// verdict returns what is known of a template, and asks for a dry run when that is not enough. After a start, what a leader before
// this one has written of the same generation is believed until there is a new answer.
func (d *dryRuns) verdict(name types.NamespacedName, t *templatecache.Template, sizes string) *verdict {
	about := subject{t.UID, t.Generation, sizes}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.wanted[name] = about
	known, is := d.answers[name]
	if is && known.subject == about && d.clock.Since(known.at) < dryRunLife {
		return &known.verdict
	}
	d.queue.Add(name)
	if is && known.uid == about.uid && known.generation == about.generation {
		return &known.verdict
	}
	stored := meta.FindStatusCondition(t.Conditions, v1beta1.ConditionDryRunSucceeded)
	if !is && stored != nil && stored.ObservedGeneration == t.Generation {
		return &verdict{stored.Status, stored.Reason, stored.Message}
	}
	return &verdict{metav1.ConditionUnknown, v1beta1.ReasonNotTried, "its turn has not come yet"}
}

func (d *dryRuns) forget(name types.NamespacedName) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	delete(d.answers, name)
	delete(d.wanted, name)
}

// Start makes dry runs until ctx ends. The manager calls it on the leader.
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

// next makes one dry run, unless it has become needless.
func (d *dryRuns) next(ctx context.Context, name types.NamespacedName) {
	t := d.templates.Get(name.Namespace, name.Name)
	d.mutex.Lock()
	about, wanted := d.wanted[name]
	known, is := d.answers[name]
	d.mutex.Unlock()
	fresh := is && known.subject == about && d.clock.Since(known.at) < dryRunLife && known.reason != v1beta1.ReasonNotTried
	if t == nil || !wanted || fresh || t.UID != about.uid || t.Generation != about.generation {
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
	if d.wanted[name] == about {
		d.answers[name] = answer{found, about, d.clock.Now()}
	}
	d.mutex.Unlock()
	if found.reason == v1beta1.ReasonNotTried {
		d.queue.AddRateLimited(name)
	} else {
		d.queue.Forget(name)
		// A webhook that comes tomorrow tells nobody.
		d.queue.AddAfter(name, dryRunLife)
	}
	d.done(name)
}

// try creates the machine of a template's defaults in a dry run.
func (d *dryRuns) try(ctx context.Context, t *templatecache.Template) verdict {
	made, problem := sample.Plain(t)
	if problem != nil {
		return verdict{metav1.ConditionUnknown, problem.Reason, problem.Message}
	}
	made.Object["apiVersion"], made.Object["kind"] = machineResource.GroupVersion().String(), "VirtualMachine"
	ctx, cancel := context.WithTimeout(ctx, dryRunDeadline)
	defer cancel()
	return judge(d.machines.create(ctx, &unstructured.Unstructured{Object: made.Object}), made.Secrets)
}

// judge makes a verdict of the answer of the API server. Values of sensitive parameters are taken out: a refusal may quote them.
func judge(err error, secrets []string) verdict {
	if err == nil || apierrors.IsAlreadyExists(err) {
		// That a machine of the name exists is found out last, when everybody has accepted.
		return verdict{metav1.ConditionTrue, v1beta1.ReasonAccepted, "the VirtualMachine of the template's defaults was accepted in a dry run"}
	}
	text := err.Error()
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "(sensitive)")
	}
	text = excerpt.Of(text, maximumMessage)
	var status apierrors.APIStatus
	refused := errors.As(err, &status) && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsForbidden(err) && !strings.Contains(text, "cannot create resource") ||
		status.Status().Code == 422 || status.Status().Code == 409 || status.Status().Code == 413)
	if !refused {
		return verdict{metav1.ConditionUnknown, v1beta1.ReasonNotTried, "the dry run could not be made: " + text}
	}
	return verdict{metav1.ConditionFalse, v1beta1.ReasonRefused, "the VirtualMachine of the template's defaults is refused: " + text}
}

var machineResource = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}

// dryRunner creates machines in dry runs and never otherwise.
type dryRunner struct{ client dynamic.Interface }

func (d dryRunner) create(ctx context.Context, machine *unstructured.Unstructured) error {
	_, err := d.client.Resource(machineResource).Namespace(machine.GetNamespace()).
		Create(ctx, machine, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager})
	// Unwrapped: its words are for the template's owner, who knows what was tried.
	return err
}
