package cabundle

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/internal/certificates/certificatestest"
	"github.com/vmstencil/stencil/internal/certificates/publication"
)

var secretName = types.NamespacedName{Namespace: "stencil-system", Name: "stencil-webhook-ca"}

// cluster is a reconciler with a fake API that stores objects in memory.
type cluster struct {
	client.Client
	reconciler *Reconciler
	recorder   *events.FakeRecorder
	clock      *clocktesting.FakePassiveClock
	// failure, if set, is the error of the next patch.
	failure error
	// stale, if set, is the result of Configurations.
	stale []publication.Configuration
}

func newCluster(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, admissionregistrationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := &cluster{
		Client:   fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(),
		recorder: events.NewFakeRecorder(100),
		clock:    clocktesting.NewFakePassiveClock(noon),
	}
	reconciler, err := New(Options{
		Secrets:             c.Client,
		Secret:              secretName,
		Configurations:      c,
		Client:              c,
		CertificateDuration: overlap,
		Recorder:            c.recorder,
		Registerer:          prometheus.NewRegistry(),
		Clock:               c.clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.reconciler = reconciler
	return c
}

// Configurations implements Configurations.
func (c *cluster) Configurations(ctx context.Context) ([]publication.Configuration, error) {
	if c.stale != nil {
		return c.stale, nil
	}
	var configurations []publication.Configuration
	for _, object := range []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "render"}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "validate"}},
	} {
		switch err := c.Get(ctx, client.ObjectKeyFromObject(object), object); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, err
		default:
			configurations = append(configurations, publication.ConfigurationOf(object))
		}
	}
	return configurations, nil
}

// Patch implements Patcher.
func (c *cluster) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if err := c.failure; err != nil {
		c.failure = nil
		return err
	}
	return c.Client.Patch(ctx, object, patch, options...)
}

// reconcile runs the reconciler once and returns its result.
func (c *cluster) reconcile(t *testing.T) reconcile.Result {
	t.Helper()
	result, err := c.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: secretName})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// replace overwrites an object regardless of its resource version.
func (c *cluster) replace(t *testing.T, object client.Object) {
	t.Helper()
	present := object.DeepCopyObject().(client.Object)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), present); err != nil {
		t.Fatal(err)
	}
	object.SetResourceVersion(present.GetResourceVersion())
	if err := c.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// bundles returns the caBundle of every webhook, by webhook.
func (c *cluster) bundles(t *testing.T) map[string]string {
	t.Helper()
	configurations, err := c.Configurations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bundles := map[string]string{}
	for _, configuration := range configurations {
		for _, webhook := range configuration.Webhooks {
			bundles[webhook.Name] = string(webhook.CABundle)
		}
	}
	return bundles
}

// drain returns the events so far.
func (c *cluster) drain() []string {
	var drained []string
	for len(c.recorder.Events) > 0 {
		drained = append(drained, <-c.recorder.Events)
	}
	return drained
}

func render(bundle []byte) *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "render", Labels: map[string]string{"kept": "yes"}},
		Webhooks: []admissionregistrationv1.MutatingWebhook{
			{Name: "one", ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: bundle}, TimeoutSeconds: new(int32)},
			{Name: "two", ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: bundle}},
		},
	}
}

func validate(bundle []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "validate"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{
			{Name: "three", ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: bundle}},
		},
	}
}

func secret(authority *certificatestest.Authority) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: secretName.Namespace, Name: secretName.Name},
		Data:       map[string][]byte{corev1.TLSCertKey: authority.PEM()},
	}
}

func everywhere(authorities ...*certificatestest.Authority) map[string]string {
	bundle := string(pemOf(authorities...))
	return map[string]string{"one": bundle, "two": bundle, "three": bundle}
}

// The life of the caBundles, from an installation through a rotation to the end of the former authority.
func TestReconcileThroughALife(t *testing.T) {
	first := certificatestest.NewAuthority(t, ago(time.Hour), 365*24*time.Hour)
	second := certificatestest.NewAuthority(t, noon.Add(time.Hour), 365*24*time.Hour)
	c := newCluster(t, render(nil), validate(nil))

	expect := func(what string, bundles map[string]string, events int) {
		t.Helper()
		if diff := cmp.Diff(bundles, c.bundles(t)); diff != "" {
			t.Fatalf("%s: caBundles (-want +got):\n%s", what, diff)
		}
		if got := c.drain(); len(got) != events {
			t.Fatalf("%s: want %d events, got %q", what, events, got)
		}
	}
	c.reconcile(t)
	expect("before there is an authority", everywhere(), 0)

	if err := c.Create(t.Context(), secret(first)); err != nil {
		t.Fatal(err)
	}
	c.reconcile(t)
	expect("with the first authority", everywhere(first), 2)
	if result := c.reconcile(t); result != (reconcile.Result{}) {
		t.Errorf("nothing is going to change, but the reconciler wants %+v", result)
	}
	expect("the second time round", everywhere(first), 0)

	c.clock.SetTime(noon.Add(time.Hour))
	c.replace(t, secret(second))
	result := c.reconcile(t)
	expect("after a rotation", everywhere(second, first), 2)
	if want := (reconcile.Result{RequeueAfter: overlap + time.Second}); result != want {
		t.Errorf("want %+v, got %+v", want, result)
	}

	for _, object := range []client.Object{render(nil), validate(nil)} {
		c.replace(t, object)
	}
	c.reconcile(t)
	expect("after somebody has emptied all of them", everywhere(second, first), 2)

	if err := c.Delete(t.Context(), secret(second)); err != nil {
		t.Fatal(err)
	}
	c.reconcile(t)
	expect("while there is no authority", everywhere(second, first), 0)

	if err := c.Create(t.Context(), secret(second)); err != nil {
		t.Fatal(err)
	}
	c.clock.SetTime(noon.Add(time.Hour + overlap + time.Second))
	c.reconcile(t)
	expect("when the former authority is out of use", everywhere(second), 2)

	if err := c.Delete(t.Context(), validate(nil)); err != nil {
		t.Fatal(err)
	}
	c.reconcile(t)
	if got := testutil.ToFloat64(c.reconciler.updates.WithLabelValues("render")); got != 4 {
		t.Errorf("want 4 updates of render counted, got %v", got)
	}
}

func TestReconcileChangesNothingButTheCABundle(t *testing.T) {
	authority := certificatestest.NewAuthority(t, ago(time.Hour), 365*24*time.Hour)
	c := newCluster(t, render([]byte("not PEM")), secret(authority))
	c.reconcile(t)
	var got admissionregistrationv1.MutatingWebhookConfiguration
	if err := c.Get(t.Context(), types.NamespacedName{Name: "render"}, &got); err != nil {
		t.Fatal(err)
	}
	want := render(authority.PEM())
	want.ResourceVersion = got.ResourceVersion
	want.TypeMeta = got.TypeMeta
	if diff := cmp.Diff(want, &got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestReconcileOverwritesNobodysChange(t *testing.T) {
	authority := certificatestest.NewAuthority(t, ago(time.Hour), 365*24*time.Hour)
	c := newCluster(t, render(nil), secret(authority))
	// The watch has not received the other client's write yet.
	configurations, err := c.Configurations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.stale = slices.Clone(configurations)
	changed := render(nil)
	changed.Webhooks = changed.Webhooks[:1]
	c.replace(t, changed)
	if want, got := (reconcile.Result{RequeueAfter: conflictDelay}), c.reconcile(t); got != want {
		t.Errorf("want %+v, got %+v", want, got)
	}
	if diff := cmp.Diff(map[string]string{"one": ""}, func() map[string]string { c.stale = nil; return c.bundles(t) }()); diff != "" {
		t.Errorf("caBundles (-want +got):\n%s", diff)
	}
	c.reconcile(t)
	if diff := cmp.Diff(map[string]string{"one": string(authority.PEM())}, c.bundles(t)); diff != "" {
		t.Errorf("caBundles (-want +got):\n%s", diff)
	}
}

func TestReconcileGoesOnAfterAFailure(t *testing.T) {
	authority := certificatestest.NewAuthority(t, ago(time.Hour), 365*24*time.Hour)
	resource := schema.GroupResource{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}
	cases := map[string]struct {
		refuse    error
		wantError string
	}{
		"a refusal is reported, and the other configuration is written": {
			refuse:    apierrors.NewForbidden(resource, "render", errors.New("no")),
			wantError: `writing the caBundle of MutatingWebhookConfiguration/render: mutatingwebhookconfigurations.admissionregistration.k8s.io "render" is forbidden: no`,
		},
		"a configuration that was deleted in between is none": {
			refuse: apierrors.NewNotFound(resource, "render"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, render(nil), validate(nil), secret(authority))
			c.failure = tc.refuse
			_, err := c.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: secretName})
			message := ""
			if err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff(tc.wantError, message); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			want := map[string]string{"one": "", "two": "", "three": string(authority.PEM())}
			if diff := cmp.Diff(want, c.bundles(t)); diff != "" {
				t.Errorf("caBundles (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReconcileTellsWhatItDid(t *testing.T) {
	authority := certificatestest.NewAuthority(t, ago(time.Hour), 24*time.Hour)
	c := newCluster(t, validate(nil), secret(authority))
	c.reconcile(t)
	want := []string{"Normal CABundlePublished caBundle of ValidatingWebhookConfiguration/validate now holds the present certificate authority " +
		"(valid until 2026-06-02T11:00:00Z) and 0 former ones"}
	if diff := cmp.Diff(want, c.drain()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got := testutil.ToFloat64(c.reconciler.updates.WithLabelValues("validate")); got != 1 {
		t.Errorf("want 1 update counted, got %v", got)
	}
	if got := c.bundles(t)["three"]; strings.Count(got, "BEGIN") != 1 {
		t.Errorf("want one certificate in the caBundle, got %q", got)
	}
}
