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

// Policies returns the policies; policycache.Cache implements it.
type Policies interface {
	Synced() bool
	States() []policycache.State
	// StatesChanged returns a channel that is closed when the result of States changes, other than its statistics.
	StatesChanged() <-chan struct{}
}

// Routes reports which requests are sent for evaluation; policywebhook.Reconciler implements it.
type Routes interface {
	// Open reports whether requests that match are sent for evaluation. The second result is false if that cannot be determined yet.
	Open(*v1alpha1.PolicyMatch) (open, known bool)
	// Changed returns a channel that is closed when the result of Open may have changed.
	Changed() <-chan struct{}
}

// Options are what a Reconciler needs.
type Options struct {
	Policies Policies
	// Routes may be nil if Stencil does not manage the webhook configuration. Then all requests count as sent.
	Routes Routes
	// Client writes the statuses.
	Client client.SubResourceClientConstructor
	// Recorder receives events about policies. Its scheme must contain them.
	Recorder events.EventRecorder
	// Clock provides the transition times of conditions. Default: the real clock.
	Clock clock.PassiveClock
}

// Reconciler writes the leader's fields of the statuses. It has a single request.
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
			// It is being compiled. The end of the compilation causes another request.
			continue
		}
		failures = append(failures, r.updateStatus(ctx, state), r.prune(ctx, state.Object))
		if meta.IsStatusConditionFalse(state.Object.Status.Conditions, v1alpha1.ConditionActive) {
			// A quarantine ends when the replicas no longer repeat it.
			again = alarm
		}
	}
	return reconcile.Result{RequeueAfter: again}, errors.Join(failures...)
}

// updateStatus writes the status of one policy if it differs from the stored one, and an event if its condition Active has changed.
func (r *Reconciler) updateStatus(ctx context.Context, state policycache.State) error {
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

// routed reports whether requests are sent for evaluation by the active version. A new leader that cannot determine this yet uses the
// condition that the previous leader wrote.
func (r *Reconciler) routed(state *policycache.State) bool {
	if r.options.Routes == nil || state.Active == nil {
		return true
	}
	open, known := r.options.Routes.Open(&state.Active.Spec.Match)
	if known {
		return open
	}
	return meta.IsStatusConditionTrue(state.Object.Status.Conditions, v1alpha1.ConditionActive)
}

// own returns the leader's fields of a stored status.
func own(stored *v1alpha1.VirtualMachinePolicyStatus) v1alpha1.VirtualMachinePolicyStatus {
	fields := *stored
	fields.Replicas, fields.Audit, fields.Templates = nil, nil, nil
	return fields
}

// same compares two statuses. Raw JSON is compared by its meaning, because the API server formats it differently.
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

// noteOf returns the condition Active if it has changed in a way that requires an event. That requests are not sent yet does not, unless
// the policy was active before.
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

// prune removes the entries of replicas that no longer exist. It applies an empty status under their field manager, as they do themselves
// when they end.
func (r *Reconciler) prune(ctx context.Context, policy *v1alpha1.VirtualMachinePolicy) error {
	var failures []error
	for i := range policy.Status.Replicas {
		if replica := &policy.Status.Replicas[i]; silent(replica, r.options.Clock.Now()) {
			failures = append(failures, apply(ctx, r.options.Client, policy, replicaManager(replica.Name), &v1alpha1.VirtualMachinePolicyStatus{}))
		}
	}
	return errors.Join(failures...)
}
