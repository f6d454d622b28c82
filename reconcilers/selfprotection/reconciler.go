package selfprotection

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// OwnerAnnotation is the annotation of the ConfigMap that names the ClusterRole which owns created objects.
	OwnerAnnotation = "stencil.kubevirt.io/owner-cluster-role"
	// fieldManager owns a replaced object's fields until they are transferred.
	fieldManager = "stencil-self-protection"
	// webhooksManager owns webhooks that the manager adds to a configuration that Helm installs without.
	webhooksManager = "stencil-webhooks"
)

// Options are what a Reconciler needs.
type Options struct {
	// ConfigMap names the ConfigMap with the manifests. With ClusterRole, only its namespace is used.
	ConfigMap types.NamespacedName
	// ClusterRole names the ClusterRole that holds the manifests in ManifestsAnnotation, if no ConfigMap does.
	ClusterRole string
	// Trust names the ValidatingWebhookConfiguration from which webhooks in the manifests get their caBundle. If empty, another component writes it.
	Trust string
	// Reader reads from the API server itself, not from a cache.
	Reader client.Reader
	// Client writes the objects.
	Client client.Client
	// Recorder receives an event about the ConfigMap for every restored object: the objects have no namespace, and the manager may write
	// events only in its own.
	Recorder events.EventRecorder
	// Registerer receives the metrics.
	Registerer prometheus.Registerer
	// Clock is used to compute how long an object is missing. Default: the real clock.
	Clock clock.PassiveClock
}

// Reconciler restores objects, or reports their changes. It has a single request, and Reconcile is never called concurrently.
type Reconciler struct {
	options Options
	metrics metrics
	// version is the ConfigMap's resource version at the last read, and seen is when this version was first read.
	version string
	seen    time.Time
	memory  map[identity]*memory
}

// memory is the state of an object between reconciliations.
type memory struct {
	// storedContent is the content that the API server stores for the manifest with this digest.
	digest        string
	storedContent content
	// complete is set once a configuration had webhooks.
	complete bool
	// missingSince is when the object was first observed missing; zero while it exists.
	missingSince time.Time
	// restored is when it was last restored.
	restored time.Time
	// problem is the difference of an object that is not restored, and reported the last one that was reported; empty if there is none.
	problem, reported string
}

// New returns a Reconciler.
func New(options Options) (*Reconciler, error) {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	r := &Reconciler{options: options, metrics: newMetrics(), memory: map[identity]*memory{}}
	for _, collector := range []prometheus.Collector{r.metrics.restored, r.metrics.protected, r.metrics.changed} {
		if err := options.Registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering the metrics of self-protection: %w", err)
		}
	}
	return r, nil
}

// release is the installed release, as read in one reconciliation.
type release struct {
	configMap *corev1.ConfigMap
	// manager is the field manager that installed it.
	manager string
	// owner owns created objects; nil if the ConfigMap names none.
	owner     *metav1.OwnerReference
	manifests map[identity]manifest
	stored    map[identity]*unstructured.Unstructured
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	gathered, found, failed := r.gather(ctx)
	planned := decide(gathered)
	for _, who := range planned.create {
		failed = errors.Join(failed, r.create(ctx, found, who))
	}
	for _, who := range planned.replace {
		failed = errors.Join(failed, r.replace(ctx, found, who))
	}
	for _, who := range planned.report {
		r.reportChange(ctx, found, who)
	}
	if failed != nil {
		return reconcile.Result{}, failed
	}
	return reconcile.Result{RequeueAfter: planned.again}, nil
}

// gather reads the release and its objects. Objects that cannot be read are left out of the state, and are in the error.
func (r *Reconciler) gather(ctx context.Context) (state, release, error) {
	gathered := state{now: r.options.Clock.Now()}
	found, err := r.readRelease(ctx)
	if err != nil || found.configMap == nil {
		if err == nil {
			r.metrics.protected.Set(0)
			r.metrics.changed.Reset()
			clear(r.memory)
		}
		return gathered, found, err
	}
	gathered.active = true
	_, written := writer(found.configMap.ManagedFields)
	if r.version != found.configMap.ResourceVersion {
		r.version, r.seen = found.configMap.ResourceVersion, gathered.now
	}
	gathered.quietUntil = quietAfter(written, r.seen)

	caBundle, err := r.trusted(ctx)
	if err != nil {
		return gathered, found, err
	}
	manifests, problems := manifestsOf(found.configMap, caBundle)
	failed := errors.Join(problems...)
	found.manifests, found.stored = map[identity]manifest{}, map[identity]*unstructured.Unstructured{}
	for _, m := range manifests {
		one, err := r.observe(ctx, found, &m, gathered.now, gathered.now.Before(gathered.quietUntil))
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		found.manifests[m.identity] = m
		gathered.objects = append(gathered.objects, one)
	}
	r.metrics.protected.Set(float64(len(found.manifests)))
	return gathered, found, failed
}

// readRelease reads the ConfigMap and the owner that it names. configMap is nil in the result if one of them does not exist or is being
// deleted.
func (r *Reconciler) readRelease(ctx context.Context) (release, error) {
	configMap, err := r.source(ctx)
	if err != nil || configMap == nil {
		return release{}, err
	}
	manager, _ := writer(configMap.ManagedFields)
	if r.options.ClusterRole != "" {
		// No release of Helm has the objects.
		manager = fieldManager
	}
	found := release{configMap: configMap, manager: manager}
	name := configMap.Annotations[OwnerAnnotation]
	if name == "" {
		return found, nil
	}
	owner := &metav1.PartialObjectMetadata{}
	owner.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	err = r.options.Reader.Get(ctx, types.NamespacedName{Name: name}, owner)
	if apierrors.IsNotFound(err) || err == nil && owner.DeletionTimestamp != nil {
		return release{}, nil
	}
	if err != nil {
		return release{}, fmt.Errorf("reading the ClusterRole %s: %w", name, err)
	}
	found.owner = &metav1.OwnerReference{
		APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: owner.Name, UID: owner.UID,
	}
	return found, nil
}

// observe compares one object with its manifest. upgrading is set during the quiet time after a change of the release.
func (r *Reconciler) observe(ctx context.Context, found release, m *manifest, now time.Time, upgrading bool) (observed, error) {
	cached := r.memory[m.identity]
	if cached == nil {
		cached = &memory{}
		r.memory[m.identity] = cached
	}
	if cached.digest != m.digest {
		cached.digest, cached.storedContent = m.digest, nil
	}
	stored := m.empty()
	err := r.options.Reader.Get(ctx, client.ObjectKeyFromObject(stored), stored)
	if err != nil && !apierrors.IsNotFound(err) {
		return observed{}, fmt.Errorf("reading %s: %w", m.identity, err)
	}
	one := observed{identity: m.identity, present: err == nil, restored: cached.restored, byManager: m.requires != "", reportOnly: m.reported}
	if m.addsWebhooks(stored) {
		m.authority, err = r.caBundle(ctx, m.authorityOf)
		if err != nil {
			return observed{}, err
		}
		one.incomplete, one.held = one.present, m.authority == nil
	}
	if !one.present {
		cached.problem = deleted
		one.reported = cached.reported == deleted
		if one.byManager {
			if one.held, err = r.lacks(ctx, m.requires); err != nil {
				return observed{}, err
			}
		}
		if cached.missingSince.IsZero() {
			cached.missingSince = now
		}
		one.missingSince = cached.missingSince
		return one, nil
	}
	cached.missingSince = time.Time{}
	cached.complete = cached.complete || !one.incomplete
	found.stored[m.identity] = stored
	if m.reported {
		cached.problem = found.problem(*m, stored)
		one.same, one.reported = cached.problem == "", cached.problem != "" && cached.reported == cached.problem
		if one.same {
			r.metrics.changed.DeleteLabelValues(m.kind, m.name)
			cached.reported = ""
		}
		return one, nil
	}
	if one.held {
		return one, nil
	}
	if cached.storedContent == nil {
		trial := replacement(stored, *m)
		err := r.options.Client.Update(ctx, trial, client.DryRunAll, client.FieldOwner(fieldManager))
		if upgrading && apierrors.IsForbidden(err) {
			// The policy manager-webhooks of the previous release is still enforced. Nothing is replaced before the end of the quiet time, and no
			// webhooks are added before it ends.
			one.held = one.incomplete
			return one, nil
		}
		if err != nil {
			return observed{}, fmt.Errorf("trying what %s would be: %w", m.identity, err)
		}
		cached.storedContent = contentOf(trial, *m)
	}
	one.same = cached.storedContent.equal(contentOf(stored, *m))
	return one, nil
}

// lacks reports whether a ConfigMap of the release's namespace does not exist.
func (r *Reconciler) lacks(ctx context.Context, name string) (bool, error) {
	configMap := &metav1.PartialObjectMetadata{}
	configMap.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	err := r.options.Reader.Get(ctx, types.NamespacedName{Namespace: r.options.ConfigMap.Namespace, Name: name}, configMap)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading ConfigMap %s: %w", name, err)
	}
	return err != nil, nil
}

// create applies the manifest of a missing object under the field manager that installed the release.
func (r *Reconciler) create(ctx context.Context, found release, who identity) error {
	m := found.manifests[who]
	object := replacement(m.empty(), m)
	if found.owner != nil {
		object.SetOwnerReferences([]metav1.OwnerReference{*found.owner})
	}
	err := r.options.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner(found.manager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("creating %s again: %w", who, err)
	}
	cached := r.memory[who]
	cached.storedContent, cached.missingSince, cached.reported = contentOf(object, m), time.Time{}, ""
	why := "it had been deleted"
	if m.requires != "" {
		why = "ConfigMap " + m.requires + ", which it requires, exists"
	}
	r.report(ctx, found, object, who, why)
	return r.own(ctx, m, object)
}

// replace replaces a changed object with its manifest, and transfers the fields to the field manager that installed the release.
func (r *Reconciler) replace(ctx context.Context, found release, who identity) error {
	m, before := found.manifests[who], found.stored[who]
	object := replacement(before, m)
	err := r.options.Client.Update(ctx, object, client.FieldOwner(fieldManager))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// Another client has changed it; the watch reports that.
		return nil
	}
	if err != nil {
		return fmt.Errorf("replacing %s: %w", who, err)
	}
	cached := r.memory[who]
	paths := contentOf(before, m).differences(cached.storedContent)
	cached.storedContent = contentOf(object, m)
	last := lastChange(before.GetManagedFields(), found.manager)
	byRelease := !cached.complete || !m.addsWebhooks(before) && (last == found.manager || last == fieldManager || last == webhooksManager)
	if m.authorityOf != "" && byRelease {
		// Helm installs the configuration without webhooks, and an upgrade leaves those of the previous revision.
		logf.FromContext(ctx).Info("wrote the webhooks of a configuration", "object", who.String())
		cached.restored = r.options.Clock.Now()
	} else {
		r.report(ctx, found, object, who, changed(paths, last))
	}
	return errors.Join(r.handOver(ctx, found, object), r.own(ctx, m, object))
}

// own has the manager own the webhooks that it adds, too: an upgrade by server-side apply would remove what belongs to Helm alone and is not in the chart.
func (r *Reconciler) own(ctx context.Context, m manifest, stored *unstructured.Unstructured) error {
	if m.authorityOf == "" {
		return nil
	}
	object := m.empty()
	object.Object["webhooks"] = stored.Object["webhooks"]
	err := r.options.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(webhooksManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("owning the webhooks of %s: %w", m.identity, err)
	}
	return nil
}
