package policywebhook

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policycache "github.com/vmstencil/stencil/cache/policies"
	"github.com/vmstencil/stencil/internal/await"
	"github.com/vmstencil/stencil/internal/excerpt"
)

const (
	fieldManager = client.FieldOwner("stencil-policy-webhook")

	reasonRestored = "Restored"
	actionRestore  = "Restore"
	// maximumNames is the maximum number of entries in an event.
	maximumNames = 5

	// injectorAnnotations is the prefix of the annotations that request a caBundle from cert-manager.
	injectorAnnotations = "cert-manager.io/inject"

	// conflictDelay is how long to wait after a conflict for the watch to receive the other client's write.
	conflictDelay = 200 * time.Millisecond
	// syncDelay is how long to wait for the policies at the start.
	syncDelay = 100 * time.Millisecond
)

// Policies returns the policies; policycache.Cache implements it.
type Policies interface {
	Synced() bool
	States() []policycache.State
	// Changed returns a channel that is closed when other policies, or other versions of them, become active.
	Changed() <-chan struct{}
}

// Patcher is the part of client.Client that writes the configuration.
type Patcher interface {
	Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error
}

// Options are what a Reconciler needs.
type Options struct {
	// Configuration is the name of the ValidatingWebhookConfiguration to write.
	Configuration string
	// Reference is the name of the ValidatingWebhookConfiguration of Stencil's other webhooks. New entries get its caBundle.
	Reference string
	// BundleManaged is set if another component writes the caBundles of the entries. Otherwise they are those of the reference, unless an
	// annotation of the configuration requests them from cert-manager.
	BundleManaged bool
	Settings      Settings
	Policies      Policies
	// Client writes the configuration.
	Client Patcher
	// Recorder receives an event about the configuration when it is restored.
	Recorder events.EventRecorder
	// Registerer receives the metric.
	Registerer prometheus.Registerer
}

// Reconciler writes the configuration. It has a single request.
type Reconciler struct {
	options  Options
	reader   client.Reader
	restored prometheus.Counter
	// lastEntries are the entries that were last written or found unchanged; nil before. Reconcile is never called concurrently.
	lastEntries []admissionregistrationv1.ValidatingWebhook

	mutex sync.Mutex
	// entries are the existing entries; nil before the configuration was read.
	entries map[Entry]bool
	// excluded is whether VirtualMachines from templates have separate entries.
	excluded bool
	// changed is sent when entries or excluded change.
	changed await.Signal
}

// New returns a Reconciler.
func New(options Options) (*Reconciler, error) {
	r := &Reconciler{
		options: options,
		restored: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stencil_policy_webhooks_restored_total",
			Help: "Number of times that the webhook configuration of the policies was restored because another client had changed it.",
		}),
	}
	if err := options.Registerer.Register(r.restored); err != nil {
		return nil, fmt.Errorf("registering the metric of the policies' webhooks: %w", err)
	}
	return r, nil
}

// Open reports whether all entries that a policy needs exist. The second result is false until the configuration was read.
func (r *Reconciler) Open(match *v1alpha1.PolicyMatch) (open, read bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	closed := slices.ContainsFunc(entriesOf(match, r.excluded), func(entry Entry) bool { return !r.entries[entry] })
	return !closed, r.entries != nil
}

// Changed returns a channel that is closed when the result of Open may have changed.
func (r *Reconciler) Changed() <-chan struct{} { return r.changed.Changed() }

func (r *Reconciler) publish(webhooks []admissionregistrationv1.ValidatingWebhook, excluded bool) {
	existing := map[Entry]bool{}
	for kind := range resources {
		for _, operation := range []v1alpha1.PolicyOperation{v1alpha1.PolicyOperationCreate, v1alpha1.PolicyOperationUpdate, v1alpha1.PolicyOperationDelete} {
			for _, templated := range []bool{false, true} {
				entry := Entry{Kind: kind, Operation: operation, Templated: templated}
				if slices.ContainsFunc(webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == entry.name() }) {
					existing[entry] = true
				}
			}
		}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.entries == nil || excluded != r.excluded || !maps.Equal(existing, r.entries) {
		r.entries, r.excluded = existing, excluded
		r.changed.Send()
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !r.options.Policies.Synced() {
		// The existing entries belong to active policies.
		return reconcile.Result{RequeueAfter: syncDelay}, nil
	}
	live, reference := &admissionregistrationv1.ValidatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := r.reader.Get(ctx, client.ObjectKey{Name: r.options.Configuration}, live)
	if apierrors.IsNotFound(err) {
		// Self-protection creates it again, unless the release is being uninstalled.
		r.publish(nil, false)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the webhook configuration of the policies: %w", err)
	}
	if err := r.reader.Get(ctx, client.ObjectKey{Name: r.options.Reference}, reference); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading the webhook configuration %s: %w", r.options.Reference, err)
	}
	excluded := excludedBy(reference)
	entries := desired(activeSpecs(r.options.Policies.States()), &r.options.Settings, excluded, r.bundles(live, reference))
	err = r.apply(ctx, live, entries)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	r.publish(entries, excluded != nil)
	return reconcile.Result{}, nil
}

// activeSpecs returns the specs of the policies that apply to requests: the active version, or the stored one of a broken policy.
func activeSpecs(states []policycache.State) []*v1alpha1.VirtualMachinePolicySpec {
	var specs []*v1alpha1.VirtualMachinePolicySpec
	for i := range states {
		switch s := &states[i]; {
		case s.Active != nil:
			specs = append(specs, s.Active.Spec)
		case s.Broken != nil:
			specs = append(specs, &s.Object.Spec)
		}
	}
	return specs
}

// bundles returns a function for the caBundle of an entry: its current one if another component writes it, and otherwise that of Stencil's
// other webhooks.
func (r *Reconciler) bundles(live, reference *admissionregistrationv1.ValidatingWebhookConfiguration) func(entry string) []byte {
	var common []byte
	for _, webhook := range reference.Webhooks {
		common = webhook.ClientConfig.CABundle
	}
	managed := r.options.BundleManaged
	for name := range live.Annotations {
		managed = managed || strings.HasPrefix(name, injectorAnnotations)
	}
	return func(entry string) []byte {
		for _, webhook := range live.Webhooks {
			if managed && webhook.Name == entry && len(webhook.ClientConfig.CABundle) > 0 {
				return webhook.ClientConfig.CABundle
			}
		}
		return common
	}
}

// apply writes the entries if they differ from the current ones.
func (r *Reconciler) apply(ctx context.Context, live *admissionregistrationv1.ValidatingWebhookConfiguration, entries []admissionregistrationv1.ValidatingWebhook) error {
	differing := different(live.Webhooks, entries)
	if len(differing) == 0 && sameBundles(live.Webhooks, entries) {
		r.lastEntries = entries
		return nil
	}
	changed := live.DeepCopy()
	changed.Webhooks = entries
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	if err := r.options.Client.Patch(ctx, changed, patch, fieldManager); err != nil {
		return fmt.Errorf("writing the webhook configuration of the policies: %w", err)
	}
	log := logf.FromContext(ctx).WithValues("configuration", live.Name, "webhooks", differing)
	// The policies need the same entries as before, so another client has changed the configuration.
	if r.lastEntries != nil && len(differing) > 0 && len(different(r.lastEntries, entries)) == 0 {
		r.restored.Inc()
		log.Info("restored the webhooks of the policies")
		r.options.Recorder.Eventf(live, nil, corev1.EventTypeWarning, reasonRestored, actionRestore,
			"the webhooks of the policies were restored because another client had changed %s", excerpt.List(differing, maximumNames, ""))
	} else {
		log.Info("changed the webhooks of the policies")
	}
	r.lastEntries = entries
	return nil
}

// sameBundles compares the caBundles of entries that are otherwise equal.
func sameBundles(live, desired []admissionregistrationv1.ValidatingWebhook) bool {
	return slices.EqualFunc(live, desired, func(a, b admissionregistrationv1.ValidatingWebhook) bool {
		return a.Name == b.Name && string(a.ClientConfig.CABundle) == string(b.ClientConfig.CABundle)
	})
}
