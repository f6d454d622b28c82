package policystatus

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policycache "github.com/vmstencil/stencil/cache/policies"
)

// Policies knows the policies; a policycache.Cache does.
type Policies interface {
	Synced() bool
	States() []policycache.State
	// Stirred returns a channel that is closed when anything changes that States tells, but for the statistics.
	Stirred() <-chan struct{}
}

// Routes knows which requests are sent to be judged; a policywebhook.Reconciler does.
type Routes interface {
	// Open says whether requests that are to be judged are sent. That is not always known.
	Open(*v1alpha1.PolicyMatch) (open, known bool)
	// Changed returns a channel that is closed when Open may answer otherwise.
	Changed() <-chan struct{}
}

// Options are what a Reconciler needs.
type Options struct {
	Policies Policies
	// Routes may be nil, when somebody else looks after the webhook configuration.
	Routes Routes
	// Client writes the statuses.
	Client client.SubResourceClientConstructor
	// Recorder receives events about policies. Its scheme must know them.
	Recorder events.EventRecorder
	// Clock says when conditions change. Default: the real one.
	Clock clock.PassiveClock
}

// Reconciler writes what the leader has to say. There is only ever one request to it.
type Reconciler struct{ options Options }

// New returns a Reconciler.
func New(options Options) *Reconciler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Reconciler{options}
}

// syncDelay is how long to wait for the policies at the start.
const syncDelay = 100 * time.Millisecond

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !r.options.Policies.Synced() {
		return reconcile.Result{RequeueAfter: syncDelay}, nil
	}
	var failures []error
	again := tick
	for _, state := range r.options.Policies.States() {
		if state.Built != state.Object.Generation {
			// It is being compiled, which tells of itself when it is done.
			continue
		}
		failures = append(failures, r.keep(ctx, state), r.prune(ctx, state.Object))
		if meta.IsStatusConditionFalse(state.Object.Status.Conditions, v1alpha1.ConditionActive) {
			// A quarantine is over when nobody speaks of it any more.
			again = alarm
		}
	}
	return reconcile.Result{RequeueAfter: again}, errors.Join(failures...)
}

// keep writes the status of one policy when it is another than the stored one, and tells people what has become of it.
func (r *Reconciler) keep(ctx context.Context, state policycache.State) error {
	next := statusOf(observation{State: state, routed: r.routed(&state), now: r.options.Clock.Now()})
	if same(own(&state.Object.Status), next) {
		return nil
	}
	if err := apply(ctx, r.options.Client, state.Object, v1alpha1.FieldManagerPolicyStatus, &next); err != nil {
		return err
	}
	if n := noteOf(&state.Object.Status, &next); n != nil {
		logf.FromContext(ctx).Info("the state of a policy has changed", "policy", state.Object.Name, "reason", n.Reason, "message", n.Message)
		kind := corev1.EventTypeWarning
		if n.Status == metav1.ConditionTrue {
			kind = corev1.EventTypeNormal
		}
		r.options.Recorder.Eventf(state.Object, nil, kind, n.Reason, "Activate", "%s", n.Message)
	}
	return nil
}

// routed says whether requests are sent to be judged by the version in force. A leader that does not know yet believes what
// the one before has written.
func (r *Reconciler) routed(state *policycache.State) bool {
	if r.options.Routes == nil || state.InForce == nil {
		return true
	}
	open, known := r.options.Routes.Open(&state.InForce.Spec.Match)
	if known {
		return open
	}
	return meta.IsStatusConditionTrue(state.Object.Status.Conditions, v1alpha1.ConditionActive)
}

// own returns the fields of a stored status that the leader writes.
func own(stored *v1alpha1.VirtualMachinePolicyStatus) v1alpha1.VirtualMachinePolicyStatus {
	fields := *stored
	fields.Replicas, fields.Audit, fields.Templates = nil, nil, nil
	return fields
}

// same compares two statuses. What is raw JSON in them is compared by its meaning: the API server writes it in another way.
func same(a, b v1alpha1.VirtualMachinePolicyStatus) bool {
	before, after := a.LastGood, b.LastGood
	a.LastGood, b.LastGood = nil, nil
	if !equality.Semantic.DeepEqual(a, b) || (before == nil) != (after == nil) {
		return false
	}
	return before == nil || before.Generation == after.Generation && sameJSON(before.Spec, after.Spec)
}

func sameJSON(a, b *runtime.RawExtension) bool {
	var left, right any
	return a != nil && b != nil && json.Unmarshal(a.Raw, &left) == nil && json.Unmarshal(b.Raw, &right) == nil && reflect.DeepEqual(left, right)
}

// noteOf returns the condition Active when it is worth an event: when it has changed, but for the moment before the
// requests are sent, which is of no interest to anybody.
func noteOf(before, after *v1alpha1.VirtualMachinePolicyStatus) *metav1.Condition {
	was, is := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionActive), meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionActive)
	if was != nil && was.Status == is.Status && was.Reason == is.Reason && was.ObservedGeneration == is.ObservedGeneration {
		return nil
	}
	if is.Reason == v1alpha1.ReasonNotRouted && (was == nil || was.Status != metav1.ConditionTrue) {
		return nil
	}
	return is
}

// prune takes entries of replicas away that are gone. Their field manager leaves them, as they would have themselves.
func (r *Reconciler) prune(ctx context.Context, policy *v1alpha1.VirtualMachinePolicy) error {
	var failures []error
	for i := range policy.Status.Replicas {
		if replica := &policy.Status.Replicas[i]; silent(replica, r.options.Clock.Now()) {
			failures = append(failures, apply(ctx, r.options.Client, policy, replicaManager(replica.Name), &v1alpha1.VirtualMachinePolicyStatus{}))
		}
	}
	return errors.Join(failures...)
}
