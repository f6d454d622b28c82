package cabundle

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/internal/certificates/bundle"
	"github.com/vmstencil/stencil/internal/certificates/publication"
)

const (
	// fieldManager owns the caBundle fields.
	fieldManager = client.FieldOwner("stencil-ca-bundle")
	// reasonPublished is the reason of the event about a changed caBundle.
	reasonPublished = "CABundlePublished"
	// actionPublish is the action of that event.
	actionPublish = "PublishCABundle"
	// conflictDelay is how long to wait after a conflict for the watch to receive the other client's write.
	conflictDelay = time.Second
)

// Configurations reads the webhook configurations; publication.Watch implements it.
type Configurations interface {
	Configurations(ctx context.Context) ([]publication.Configuration, error)
}

// Patcher is the part of client.Client that writes the configurations.
type Patcher interface {
	Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error
}

// Options are what a Reconciler needs.
type Options struct {
	// Secrets reads the Secret of the authority.
	Secrets client.Reader
	// Secret names it.
	Secret types.NamespacedName
	// Configurations reads the webhook configurations that are written.
	Configurations Configurations
	// Client writes them.
	Client Patcher
	// CertificateDuration is how long a serving certificate is valid.
	CertificateDuration time.Duration
	// Recorder receives an event for every change, about the Secret: the configurations have no namespace, and
	// the manager may write events in its own only.
	Recorder events.EventRecorder
	// Registerer receives the metric.
	Registerer prometheus.Registerer
	// Clock is used to check validity. Default: the real clock.
	Clock clock.PassiveClock
}

// Reconciler writes the caBundles. It has a single request.
type Reconciler struct {
	options Options
	updates *prometheus.CounterVec
	// formers are the former authorities of the last plan. An authority that is deleted from every configuration at once is restored from
	// it. Reconcile is never called concurrently.
	formers []former
}

// New returns a Reconciler.
func New(options Options) (*Reconciler, error) {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	updates := newUpdates()
	if err := options.Registerer.Register(updates); err != nil {
		return nil, fmt.Errorf("registering the metric of caBundle updates: %w", err)
	}
	return &Reconciler{options: options, updates: updates}, nil
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	planned, conflict, err := r.reconcile(ctx, r.formers, decide)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.formers = planned.formers
	if conflict {
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	}
	if planned.again.IsZero() {
		return reconcile.Result{}, nil
	}
	// One second later than required, so that the time has passed.
	return reconcile.Result{RequeueAfter: planned.again.Sub(r.options.Clock.Now()) + time.Second}, nil
}

// joining adds the current authority on every replica: see the package.
type joining struct{ *Reconciler }

// Reconcile implements reconcile.Reconciler.
func (j joining) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	_, conflict, err := j.reconcile(ctx, nil, join)
	if err != nil || !conflict {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: conflictDelay}, nil
}

// reconcile gathers, decides and applies. It may be called concurrently.
func (r *Reconciler) reconcile(ctx context.Context, formers []former, decide func(state, time.Duration) plan) (plan, bool, error) {
	secret, gathered, err := r.gather(ctx)
	if err != nil {
		return plan{}, false, err
	}
	gathered.formers = formers
	planned := decide(gathered, r.options.CertificateDuration)
	conflict, err := r.apply(ctx, secret, planned)
	return planned, conflict, err
}

func (r *Reconciler) gather(ctx context.Context) (*corev1.Secret, state, error) {
	gathered := state{now: r.options.Clock.Now()}
	secret := &corev1.Secret{}
	err := r.options.Secrets.Get(ctx, r.options.Secret, secret)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, state{}, fmt.Errorf("reading the Secret of the certificate authority: %w", err)
	}
	if gathered.configurations, err = r.options.Configurations.Configurations(ctx); err != nil {
		return nil, state{}, fmt.Errorf("reading the webhook configurations: %w", err)
	}
	gathered.current = authorityOf(secret)
	return secret, gathered, nil
}

// authorityOf returns the authority in the Secret, or nil if there is no readable one.
func authorityOf(secret *corev1.Secret) *x509.Certificate {
	certificates := bundle.Parse(secret.Data[corev1.TLSCertKey])
	if len(certificates) == 0 {
		return nil
	}
	return certificates[0]
}

// apply writes the outdated configurations. It reports a conflict, which is not an error, when another client wrote a configuration at the
// same time.
func (r *Reconciler) apply(ctx context.Context, secret *corev1.Secret, planned plan) (conflict bool, err error) {
	var failures []error
	for _, configuration := range planned.outdated {
		changed := configuration.WithCABundle(planned.bundle)
		patch := client.StrategicMergeFrom(configuration.Object, client.MergeFromWithOptimisticLock{})
		err := r.options.Client.Patch(ctx, changed, patch, fieldManager)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case apierrors.IsConflict(err):
			conflict = true
			continue
		case err != nil:
			failures = append(failures, fmt.Errorf("writing the caBundle of %s: %w", configuration.Target, err))
			continue
		}
		r.updates.WithLabelValues(configuration.Target.Name).Inc()
		logf.FromContext(ctx).Info("published the certificate authorities", "configuration", configuration.Target.String(), "authorities", len(planned.authorities))
		r.options.Recorder.Eventf(secret, changed, corev1.EventTypeNormal, reasonPublished, actionPublish,
			"caBundle of %s now holds the present certificate authority (valid until %s) and %d former ones",
			configuration.Target, planned.authorities[0].NotAfter.UTC().Format(time.RFC3339), len(planned.authorities)-1)
	}
	return conflict, errors.Join(failures...)
}
