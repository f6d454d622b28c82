package policysource

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/reconcilers/internal/policyapply"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
	"github.com/vmstencil/stencil/reconcilers/policysource/artifact"
)

const (
	// defaultInterval is the time between two checks of a source without an interval.
	defaultInterval = 10 * time.Minute
	// retryInterval is the maximum time until a failed check is repeated.
	retryInterval = time.Minute
	// pruneAction and applyAction are the actions of events.
	applyAction, pruneAction = "Apply", "Delete"
	// reasonPruned is the reason of an event about a policy that was deleted.
	reasonPruned = "PolicyRemoved"
)

// Registry reads artifacts.
type Registry interface {
	Get(ctx context.Context, request artifact.Request) (*artifact.Artifact, error)
}

// Statuses writes statuses.
type Statuses interface {
	Apply(ctx context.Context, object statuswriter.Object, owner string, status any) error
}

// Options are the dependencies of a Reconciler.
type Options struct {
	// Namespace of Secrets and ConfigMaps of sources.
	Namespace string
	// Reader reads sources and policies from the API server itself, not from a cache.
	Reader client.Reader
	// Account writes the policies, and reads Secrets and ConfigMaps. If it is nil, no source is reconciled, and its status reports that.
	Account client.Client
	// AllowedNetworks are private networks in which registries may be.
	AllowedNetworks []netip.Prefix
	// ClusterNetworks are networks of the cluster, in which no registry is.
	ClusterNetworks []netip.Prefix
	// Registry is for tests. The default is one that reads registries.
	Registry Registry
	Statuses Statuses
	Recorder events.EventRecorder
	// Registerer receives the metrics.
	Registerer prometheus.Registerer
	// Clock is the real clock by default.
	Clock clock.PassiveClock
}

// Reconciler reconciles sources.
type Reconciler struct {
	options Options
	metrics *metrics
	mutex   sync.Mutex
	// states of the sources by their names. A source is reconciled by one worker at a time.
	states map[string]*state
}

// state is what is held of a source between reconciliations.
type state struct {
	generation int64
	refreshed  string
	// checked is the time of the last check, failure its error.
	checked time.Time
	failure error
	// newest is the artifact of the last check that succeeded, active the one that was applied last. They are the same if all is well.
	newest, active *artifact.Artifact
	// enforcement is the one with which applier has applied policies.
	enforcement v1alpha1.Enforcement
	applier     *policyapply.Applier
}

// New returns a Reconciler. It fails if the metrics are registered already.
func New(options Options) (*Reconciler, error) {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Registry == nil {
		options.Registry = &artifact.Client{Allowed: options.AllowedNetworks, Cluster: options.ClusterNetworks}
	}
	r := &Reconciler{options: options, metrics: &metrics{reasons: map[string]string{}}, states: map[string]*state{}}
	if err := options.Registerer.Register(r.metrics); err != nil {
		return nil, fmt.Errorf("registering the metrics of policy sources: %w", err)
	}
	return r, nil
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	source := &v1alpha1.VirtualMachinePolicySource{}
	err := r.options.Reader.Get(ctx, request.NamespacedName, source)
	if apierrors.IsNotFound(err) || err == nil && source.DeletionTimestamp != nil {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		delete(r.states, request.Name)
		r.metrics.set(request.Name, "")
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading VirtualMachinePolicySource %s: %w", request.Name, err)
	}
	if r.options.Account == nil || source.Spec.Suspended {
		return reconcile.Result{}, r.write(ctx, source, observation{enabled: r.options.Account != nil})
	}
	s := r.state(source)
	if !r.options.Clock.Now().Before(due(source, s)) {
		r.check(ctx, source, s)
	}
	left, problem := r.roll(ctx, source, s)
	if errors.Is(problem, errChanged) {
		// The change is reconciled next.
		return reconcile.Result{}, nil
	}
	seen := observation{enabled: true, checked: true, failure: s.failure, problem: problem, active: s.active, left: left}
	if err := r.write(ctx, source, seen); err != nil {
		return reconcile.Result{}, err
	}
	if problem != nil && !permanent(problem) {
		return reconcile.Result{}, problem
	}
	after := max(due(source, s).Sub(r.options.Clock.Now()), time.Second)
	if problem != nil {
		// Policies of other owners are not watched.
		after = min(after, retryInterval)
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// state returns the state of a source, a new one if it has none.
func (r *Reconciler) state(source *v1alpha1.VirtualMachinePolicySource) *state {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	s := r.states[source.Name]
	if s == nil {
		s = &state{}
		r.states[source.Name] = s
	}
	if s.applier == nil || s.enforcement != source.Spec.Enforcement {
		// Another enforcement is applied as if nothing had been applied before.
		s.enforcement = source.Spec.Enforcement
		s.applier = policyapply.New(policyapply.Owner{
			Label: v1alpha1.LabelPolicySource, Name: source.Name, Annotation: v1alpha1.AnnotationPolicySourceDigest, FieldManager: v1alpha1.FieldManagerPolicySource,
			Exact: true,
		}, r.options.Reader, r.options.Account)
	}
	return s
}

// due returns when the artifact is checked the next time: the zero time for a changed source.
func due(source *v1alpha1.VirtualMachinePolicySource, s *state) time.Time {
	if s.generation != source.Generation || s.refreshed != source.Annotations[v1alpha1.AnnotationRefresh] {
		return time.Time{}
	}
	interval := source.Spec.Interval.Duration
	if interval <= 0 {
		interval = defaultInterval
	}
	if s.failure != nil {
		interval = min(interval, retryInterval)
	}
	return s.checked.Add(interval)
}

// check reads the artifact. What was read before is held if it fails.
func (r *Reconciler) check(ctx context.Context, source *v1alpha1.VirtualMachinePolicySource, s *state) {
	found, err := r.get(ctx, source, s.newest, "")
	s.generation, s.refreshed, s.checked, s.failure = source.Generation, source.Annotations[v1alpha1.AnnotationRefresh], r.options.Clock.Now(), err
	if err == nil {
		s.newest = found
	}
	digest := source.Status.Digest
	if s.active != nil || digest == "" || s.newest != nil && s.newest.Digest == digest {
		return
	}
	// The manager has restarted, and what is applied is not what the URL refers to: it is read by its digest, so that it is restored.
	last, err := r.get(ctx, source, nil, digest)
	if err != nil {
		logf.FromContext(ctx).Info("the policies that are applied cannot be read again, and changes of them are not restored", "source", source.Name, "digest", digest, "error", err.Error())
		return
	}
	s.active = last
}

func (r *Reconciler) get(ctx context.Context, source *v1alpha1.VirtualMachinePolicySource, held *artifact.Artifact, digest string) (*artifact.Artifact, error) {
	with, err := r.credentials(ctx, source)
	if err != nil {
		return nil, err
	}
	return r.options.Registry.Get(ctx, artifact.Request{URL: source.Spec.URL, Digest: digest, PublicKeys: source.Spec.Verify.PublicKeys, With: with, Held: held})
}

// credentials reads the Secret and the ConfigMap of a source, each if it has a name.
func (r *Reconciler) credentials(ctx context.Context, source *v1alpha1.VirtualMachinePolicySource) (with artifact.Credentials, err error) {
	read := func(field, kind, name string, into client.Object) error {
		err := r.options.Account.Get(ctx, client.ObjectKey{Namespace: r.options.Namespace, Name: name}, into)
		switch {
		case apierrors.IsForbidden(err):
			return fmt.Errorf("spec.%s: %s %s/%s must not be read: add it to the chart's value policySources.readable", field, kind, r.options.Namespace, name)
		case apierrors.IsNotFound(err):
			return fmt.Errorf("spec.%s: %s %s/%s does not exist", field, kind, r.options.Namespace, name)
		case err != nil:
			return fmt.Errorf("spec.%s: reading %s %s/%s: %w", field, kind, r.options.Namespace, name, err)
		}
		return nil
	}
	if name := source.Spec.SecretRef; name != "" {
		secret := &corev1.Secret{}
		if err := read("secretRef", "Secret", name, secret); err != nil {
			return with, err
		}
		with.Secret, with.Docker = "Secret "+r.options.Namespace+"/"+name, secret.Data[corev1.DockerConfigJsonKey]
		if secret.Type != corev1.SecretTypeDockerConfigJson || with.Docker == nil {
			return with, fmt.Errorf("spec.secretRef: %s is not of type %s", with.Secret, corev1.SecretTypeDockerConfigJson)
		}
	}
	if name := source.Spec.CertConfigMap; name != "" {
		certificates := &corev1.ConfigMap{}
		if err := read("certConfigMap", "ConfigMap", name, certificates); err != nil {
			return with, err
		}
		for _, text := range certificates.Data {
			with.Authorities = append(with.Authorities, []byte(text))
		}
	}
	return with, nil
}

// roll applies the newest artifact. If it cannot be, what was applied before is restored. It returns the policies of the source that the applied artifact
// does not have, and why the newest artifact is not applied.
func (r *Reconciler) roll(ctx context.Context, source *v1alpha1.VirtualMachinePolicySource, s *state) (left []string, problem error) {
	if s.newest != nil {
		left, problem = r.apply(ctx, source, s, s.newest)
		if problem == nil {
			s.active = s.newest
			return left, nil
		}
	}
	if s.active == nil || s.active == s.newest || problem != nil && !permanent(problem) {
		return source.Status.Left, problem
	}
	left, err := r.apply(ctx, source, s, s.active)
	if problem == nil || errors.Is(err, errChanged) {
		problem = err
	}
	return left, problem
}

// apply applies all policies of an artifact, or none: before a new one all are tried in dry runs.
func (r *Reconciler) apply(ctx context.Context, source *v1alpha1.VirtualMachinePolicySource, s *state, wanted *artifact.Artifact) ([]string, error) {
	plan, err := s.applier.Plan(ctx, manifests(wanted, source.Spec.Enforcement))
	if err != nil {
		return nil, err
	}
	if len(plan.Foreign) > 0 {
		return nil, &conflictError{plan.Foreign}
	}
	for _, each := range plan.Apply {
		if err := s.applier.DryRun(ctx, each); err != nil {
			return nil, classified(err)
		}
	}
	for _, each := range plan.Apply {
		// The dry runs take time: a user who deletes the source and then its policies must not get one of them back.
		if err := r.unchanged(ctx, source); err != nil {
			return nil, err
		}
		changed, err := s.applier.Apply(ctx, each)
		if err != nil {
			return nil, classified(err)
		}
		if changed != nil {
			logf.FromContext(ctx).Info("applied a policy of a source", "policy", each.Name, "digest", wanted.Digest)
		}
	}
	if !source.Spec.Prune {
		return plan.Remove, nil
	}
	for _, name := range plan.Remove {
		removed, err := s.applier.Remove(ctx, name)
		if err != nil {
			return nil, err
		}
		if removed != nil {
			logf.FromContext(ctx).Info("deleted a policy of a source", "policy", name, "digest", wanted.Digest)
			r.options.Recorder.Eventf(source, removed, corev1.EventTypeNormal, reasonPruned, pruneAction, "policy %s was deleted: %s does not have it", name, wanted.Digest)
		}
	}
	return nil, nil
}

// errChanged is returned when a source is not the one any more that is reconciled.
var errChanged = errors.New("the source was changed or deleted meanwhile")

// unchanged returns errChanged if a source was deleted, or its spec has changed, since it was read.
func (r *Reconciler) unchanged(ctx context.Context, source *v1alpha1.VirtualMachinePolicySource) error {
	stored := &v1alpha1.VirtualMachinePolicySource{}
	err := r.options.Reader.Get(ctx, client.ObjectKeyFromObject(source), stored)
	if apierrors.IsNotFound(err) {
		return errChanged
	}
	if err != nil {
		return fmt.Errorf("reading VirtualMachinePolicySource %s: %w", source.Name, err)
	}
	if stored.UID != source.UID || stored.Generation != source.Generation || stored.DeletionTimestamp != nil {
		return errChanged
	}
	return nil
}

// manifests returns the policies of an artifact as they are applied.
func manifests(of *artifact.Artifact, enforcement v1alpha1.Enforcement) []policyapply.Manifest {
	all := make([]policyapply.Manifest, len(of.Policies))
	for i, policy := range of.Policies {
		if enforcement != "" {
			policy = policy.DeepCopy()
			// The policy was decoded as one, with an object as its spec.
			_ = unstructured.SetNestedField(policy.Object, string(enforcement), "spec", "enforcement")
		}
		all[i] = policyapply.Manifest{Name: policy.GetName(), Digest: of.Digest, Object: policy}
	}
	return all
}

// classified returns a rejectedError for what another attempt does not change.
func classified(err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		return &rejectedError{err}
	}
	return err
}

// permanent reports whether an error is not changed by another attempt.
func permanent(err error) bool {
	var conflict *conflictError
	var rejected *rejectedError
	return errors.As(err, &conflict) || errors.As(err, &rejected)
}

// write writes the status, and an event when the reason of condition Ready changes.
func (r *Reconciler) write(ctx context.Context, source *v1alpha1.VirtualMachinePolicySource, o observation) error {
	next, changed := decide(source, o, r.options.Clock.Now())
	before, after := meta.FindStatusCondition(source.Status.Conditions, v1alpha1.ConditionReady), meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionReady)
	r.metrics.set(source.Name, after.Reason)
	if !changed {
		return nil
	}
	if err := r.options.Statuses.Apply(ctx, statuswriter.PolicySource(source), v1alpha1.FieldManagerPolicySource, next); err != nil {
		return err
	}
	if before != nil && before.Reason == after.Reason && source.Status.Digest == next.Digest {
		return nil
	}
	kind := corev1.EventTypeNormal
	if after.Status == metav1.ConditionFalse {
		kind = corev1.EventTypeWarning
	}
	r.options.Recorder.Eventf(source, nil, kind, after.Reason, applyAction, "%s", after.Message)
	return nil
}
