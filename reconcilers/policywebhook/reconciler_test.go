package policywebhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policycache "github.com/vmstencil/stencil/cache/policies"
)

// policies is a fake cache of active policies.
type policies struct {
	specs    []*v1alpha1.VirtualMachinePolicySpec
	unsynced bool
}

func (p *policies) Synced() bool             { return !p.unsynced }
func (p *policies) Changed() <-chan struct{} { return nil }
func (p *policies) States() []policycache.State {
	var states []policycache.State
	for i, spec := range p.specs {
		state := policycache.State{Object: &v1alpha1.VirtualMachinePolicy{Spec: *spec}}
		// Broken ones have entries, too.
		if i > 0 {
			state.Broken = &[]policycache.Active{{}}[0].Entry
		} else {
			state.Active = &policycache.Active{Spec: spec}
		}
		states = append(states, state)
	}
	return append(states, policycache.State{Object: &v1alpha1.VirtualMachinePolicy{Spec: *policy(about("VirtualMachineTemplate"))}})
}

// world is a fake cluster with the two configurations.
type world struct {
	t        *testing.T
	client   client.Client
	policies *policies
	recorder *events.FakeRecorder
	*Reconciler
}

func newWorld(t *testing.T, bundleManaged bool, annotations map[string]string) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, policies: &policies{}, recorder: events.NewFakeRecorder(10)}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "stencil-validate"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "a", ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: []byte("reference")},
			}},
		},
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "stencil-policies", Labels: map[string]string{"kept": "true"}, Annotations: annotations},
		},
	).Build()
	var err error
	w.Reconciler, err = New(Options{
		Configuration: "stencil-policies", Reference: "stencil-validate", BundleManaged: bundleManaged,
		Settings: Settings{URL: "https://x", TimeoutSeconds: 10},
		Policies: w.policies, Client: w.client, Recorder: w.recorder, Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.reader = w.client
	return w
}

func (w *world) get() *admissionregistrationv1.ValidatingWebhookConfiguration {
	w.t.Helper()
	live := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: "stencil-policies"}, live); err != nil {
		w.t.Fatal(err)
	}
	return live
}

func (w *world) change(apply func(*admissionregistrationv1.ValidatingWebhookConfiguration)) {
	w.t.Helper()
	live := w.get()
	apply(live)
	if err := w.client.Update(w.t.Context(), live); err != nil {
		w.t.Fatal(err)
	}
}

// reconcile runs the reconciler and returns the entries with their caBundles.
func (w *world) reconcile() map[string]string {
	w.t.Helper()
	if _, err := w.Reconcile(w.t.Context(), reconcile.Request{}); err != nil {
		w.t.Fatal(err)
	}
	entries := map[string]string{}
	for _, webhook := range w.get().Webhooks {
		entries[webhook.Name] = string(webhook.ClientConfig.CABundle)
	}
	return entries
}

func (w *world) restorations() float64 { return testutil.ToFloat64(w.restored) }

const (
	createVM = "create.virtualmachine.policies.stencil.kubevirt.io"
	updateVM = "update.virtualmachine.policies.stencil.kubevirt.io"

	createInstance = "create.virtualmachineinstance.policies.stencil.kubevirt.io"
	updateInstance = "update.virtualmachineinstance.policies.stencil.kubevirt.io"
)

func TestEntriesComeAndGoWithThePolicies(t *testing.T) {
	w := newWorld(t, true, nil)
	w.policies.unsynced = true
	w.change(func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
		c.Webhooks = []admissionregistrationv1.ValidatingWebhook{{Name: createVM}}
	})
	if diff := cmp.Diff(map[string]string{createVM: ""}, w.reconcile()); diff != "" {
		t.Errorf("before the policies are known (-want +got):\n%s", diff)
	}
	if _, read := w.Open(&policy().Match); read {
		t.Error("doors are known before the policies are")
	}
	w.policies.unsynced = false
	if diff := cmp.Diff(map[string]string{}, w.reconcile()); diff != "" {
		t.Errorf("without policies (-want +got):\n%s", diff)
	}
	w.policies.specs = []*v1alpha1.VirtualMachinePolicySpec{policy(on("CREATE"), enforced("Warn", "Deny")), policy(on("UPDATE"))}
	news := w.Changed()
	if diff := cmp.Diff(map[string]string{createVM: "reference", createInstance: "reference", updateVM: "reference", updateInstance: "reference"}, w.reconcile()); diff != "" {
		t.Errorf("with a policy and a broken one (-want +got):\n%s", diff)
	}
	select {
	case <-news:
	default:
		t.Error("nobody is told that doors are open")
	}
	for name, want := range map[v1alpha1.PolicyOperation]bool{"CREATE": true, "UPDATE": true, "DELETE": false} {
		if got, read := w.Open(&policy(on(name)).Match); got != want || !read {
			t.Errorf("%s is open: %v, known: %v", name, got, read)
		}
	}
	if w.get().Labels["kept"] != "true" {
		t.Error("labels are lost")
	}
	version := w.get().ResourceVersion
	w.reconcile()
	if got := w.get().ResourceVersion; got != version {
		t.Error("what is right is written again")
	}
	w.policies.specs = nil
	if diff := cmp.Diff(map[string]string{}, w.reconcile()); diff != "" {
		t.Errorf("without policies again (-want +got):\n%s", diff)
	}
	if w.restorations() != 0 {
		t.Errorf("%v restorations although nobody has changed anything", w.restorations())
	}
}

func TestWhatSomebodyElseChangesIsRestored(t *testing.T) {
	for name, attack := range map[string]func(*admissionregistrationv1.ValidatingWebhookConfiguration){
		"an entry that is told to fail open": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
		},
		"an entry that is made to look away": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"never": ""}}
		},
		"a condition that is never met": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].MatchConditions = append(c.Webhooks[0].MatchConditions, admissionregistrationv1.MatchCondition{Name: "never", Expression: "false"})
		},
		"an entry that is pointed elsewhere": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].ClientConfig.URL = ptr.To("https://localhost:1")
		},
		"an entry that is taken away": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { c.Webhooks = c.Webhooks[1:] },
		"an entry that is added": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks = append(c.Webhooks, admissionregistrationv1.ValidatingWebhook{Name: "other.example.com"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, true, nil)
			w.policies.specs = []*v1alpha1.VirtualMachinePolicySpec{policy()}
			w.reconcile()
			before := w.get().Webhooks
			w.change(attack)
			w.reconcile()
			if diff := cmp.Diff(before, w.get().Webhooks); diff != "" {
				t.Errorf("restored (-want +got):\n%s", diff)
			}
			if w.restorations() != 1 || len(w.recorder.Events) != 1 {
				t.Errorf("%v restorations are counted, %d events", w.restorations(), len(w.recorder.Events))
			}
		})
	}
}

func TestCABundles(t *testing.T) {
	injected := map[string]string{"cert-manager.io/inject-ca-from": "a/b"}
	for name, tc := range map[string]struct {
		kept        bool
		annotations map[string]string
		want        string
	}{
		"are left to the authority's own reconciler": {kept: true, want: "written"},
		"are left to cert-manager":                   {annotations: injected, want: "written"},
		"follow the chart's otherwise":               {want: "reference"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.kept, tc.annotations)
			w.policies.specs = []*v1alpha1.VirtualMachinePolicySpec{policy(on("CREATE"))}
			if diff := cmp.Diff(map[string]string{createVM: "reference", createInstance: "reference"}, w.reconcile()); diff != "" {
				t.Errorf("new (-want +got):\n%s", diff)
			}
			w.change(func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
				c.Webhooks[0].ClientConfig.CABundle = []byte("written")
			})
			if diff := cmp.Diff(map[string]string{createVM: tc.want, createInstance: "reference"}, w.reconcile()); diff != "" {
				t.Errorf("written by somebody else (-want +got):\n%s", diff)
			}
			if w.restorations() != 0 {
				t.Error("a caBundle is counted as a restoration")
			}
		})
	}
}

func TestNothingIsCreatedWhereTheConfigurationIsGone(t *testing.T) {
	w := newWorld(t, true, nil)
	w.policies.specs = []*v1alpha1.VirtualMachinePolicySpec{policy()}
	w.reconcile()
	if err := w.client.Delete(t.Context(), w.get()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	if open, read := w.Open(&policy().Match); open || !read {
		t.Errorf("doors are said to be open: %v, known: %v", open, read)
	}
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "stencil-policies"}, &admissionregistrationv1.ValidatingWebhookConfiguration{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("want it to stay gone: %v", err)
	}
}
