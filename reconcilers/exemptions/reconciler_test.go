package exemptions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/exemption"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
)

// approvals holds one approval, with the condition that was written last.
type approvals struct {
	stored  v1alpha1.TemplateApproval
	written int
	fail    error
}

func (a *approvals) Snapshot(context.Context) (coverage.Snapshot, error) {
	object := a.stored.DeepCopy()
	return coverage.Snapshot{Approvals: []coverage.Approval{{Approval: coverage.Compile(object, "stencil-system"), Object: object}}}, nil
}

func (a *approvals) Apply(_ context.Context, object statuswriter.Object, by string, status any) error {
	if a.fail != nil {
		return a.fail
	}
	if object.Name != "team-a" || by != "stencil-exemptions" {
		return fmt.Errorf("%s is written by %s", object, by)
	}
	raw, err := json.Marshal(status)
	if err != nil {
		return err
	}
	a.written++
	a.stored.Status.Conditions = nil
	return json.Unmarshal(raw, &a.stored.Status)
}

// cluster holds the reconciler and its fake clients.
type cluster struct {
	t          *testing.T
	client     *fake.Clientset
	kubevirts  *dynamicfake.FakeDynamicClient
	approvals  *approvals
	recorder   *events.FakeRecorder
	now        time.Time
	reconciler *Reconciler
}

var kubevirtResource = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "kubevirts"}

func account(namespace, name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func binding(name string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects}
}

func subject(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

func newCluster(t *testing.T, names []string, objects ...runtime.Object) *cluster {
	t.Helper()
	c := &cluster{
		t: t, client: fake.NewClientset(objects...), recorder: events.NewFakeRecorder(10), approvals: &approvals{}, now: time.Unix(1_000_000, 0),
		kubevirts: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{kubevirtResource: "KubeVirtList"}),
	}
	c.approvals.stored.Name = "team-a"
	var err error
	c.reconciler, err = New(Options{
		Names: exemption.Parse(names, "stencil-system"), Binding: "stencil-exempt-users", Client: c.client, KubeVirts: c.kubevirts,
		Approvals: c.approvals, Statuses: c.approvals, Recorder: c.recorder, Registerer: prometheus.NewRegistry(), Now: func() time.Time { return c.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) installKubeVirt(namespace string) {
	c.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": map[string]any{"namespace": namespace, "name": "kubevirt"},
	}}
	if _, err := c.kubevirts.Resource(kubevirtResource).Namespace(namespace).Create(c.t.Context(), object, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// reconcile runs the reconciler one minute after the last run, and returns RequeueAfter.
func (c *cluster) reconcile() time.Duration {
	c.t.Helper()
	c.now = c.now.Add(time.Minute)
	result, err := c.reconciler.Reconcile(c.t.Context(), reconcile.Request{})
	if err != nil {
		c.t.Fatal(err)
	}
	return result.RequeueAfter
}

// want compares the subjects of the binding, the condition and the metrics.
func (c *cluster) want(subjects []rbacv1.Subject, status metav1.ConditionStatus, unknown int) {
	c.t.Helper()
	stored, err := c.client.RbacV1().ClusterRoleBindings().Get(c.t.Context(), "stencil-exempt-users", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	if diff := cmp.Diff(subjects, stored.Subjects); diff != "" {
		c.t.Errorf("subjects (-want +got):\n%s", diff)
	}
	if got := c.approvals.stored.Status.Conditions; len(got) != 1 || got[0].Type != "ExemptUsersFound" || got[0].Status != status {
		c.t.Errorf("conditions %v, want one that is %s", got, status)
	}
	if got := testutil.ToFloat64(c.reconciler.metrics.found); got != float64(len(subjects)) {
		c.t.Errorf("stencil_exempt_users_found is %v", got)
	}
	if got := testutil.CollectAndCount(c.reconciler.metrics.unknown); got != unknown {
		c.t.Errorf("stencil_exempt_users_unknown has %d users, want %d", got, unknown)
	}
}

func TestReconcile(t *testing.T) {
	c := newCluster(t, []string{"kubevirt-controller", "cdi-sa", fullController}, binding("stencil-exempt-users"),
		binding("kubevirt-controller", subject("hco", "kubevirt-controller"), subject("hco", "other"), rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "kubevirt-controller"}),
		binding("cdi-sa", subject("storage", "cdi-sa")),
		account("hco", "kubevirt-controller"), account("kubevirt", "kubevirt-controller"), account("storage", "cdi-sa"))
	cdi, kubevirt := subject("storage", "cdi-sa"), subject("hco", "kubevirt-controller")

	if after := c.reconcile(); after != shortInterval {
		t.Errorf("without KubeVirt it looks again after %s", after)
	}
	c.want([]rbacv1.Subject{cdi}, metav1.ConditionFalse, 1)
	c.installKubeVirt("hco")
	c.reconcile()
	c.want([]rbacv1.Subject{kubevirt, cdi}, metav1.ConditionFalse, 1)

	wantEvents := []string{
		"Normal ExemptUsersChanged 1 service accounts of KubeVirt and CDI are exempt from TemplateApprovals",
		"Warning ExemptUsersUnknown names in the chart value exemptUsers that exempt no user: " + fullController +
			": KubeVirt is not installed in namespace kubevirt: write the name without a namespace, kubevirt-controller" + otherThanThese,
		"Normal ExemptUsersChanged 2 service accounts of KubeVirt and CDI are exempt from TemplateApprovals",
	}
	for _, want := range wantEvents {
		if got := <-c.recorder.Events; got != want {
			t.Errorf("event\n%s\nwant\n%s", got, want)
		}
	}

	written, actions := c.approvals.written, len(c.client.Actions())
	if result, err := c.reconciler.Reconcile(t.Context(), reconcile.Request{}); err != nil || result.RequeueAfter != freshness {
		t.Fatalf("asked at once: %v, %v", result, err)
	}
	if c.approvals.written != written || len(c.client.Actions()) != actions {
		t.Error("it looked again at once, or wrote what is stored")
	}
	c.reconcile()
	if c.approvals.written != written || len(c.recorder.Events) > 0 {
		t.Error("it reported what is reported")
	}

	if err := c.kubevirts.Resource(kubevirtResource).Namespace("hco").Delete(t.Context(), "kubevirt", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.reconcile()
	c.want([]rbacv1.Subject{cdi}, metav1.ConditionFalse, 1)
}

func TestReconcileWithoutProblems(t *testing.T) {
	c := newCluster(t, []string{"kubevirt-controller"}, binding("stencil-exempt-users", subject("mallory", "kubevirt-controller")),
		binding("kubevirt-controller", subject("kubevirt", "kubevirt-controller")), account("kubevirt", "kubevirt-controller"), account("mallory", "kubevirt-controller"))
	c.installKubeVirt("kubevirt")
	c.installKubeVirt("mallory")
	if after := c.reconcile(); after != longInterval {
		t.Errorf("with all accounts it looks again after %s", after)
	}
	c.want([]rbacv1.Subject{subject("kubevirt", "kubevirt-controller")}, metav1.ConditionTrue, 0)
}

func TestReconcileWithoutABinding(t *testing.T) {
	c := newCluster(t, []string{"kubevirt-controller"})
	if after := c.reconcile(); after != shortInterval {
		t.Errorf("it looks again after %s", after)
	}
	const want = "names in the chart value exemptUsers that exempt no user: stencil-exempt-users: this ClusterRoleBinding does not exist, so no controller of KubeVirt or CDI is " +
		"exempt: install the chart again"
	if got := c.approvals.stored.Status.Conditions; len(got) != 1 || got[0].Message != want {
		t.Errorf("conditions %v, want %s", got, want)
	}
}

// Nothing is written when a read fails: the exempt accounts do not change.
func TestReconcileFails(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		verb, resource string
		want           string
	}{
		"KubeVirt objects":    {"list", "kubevirts", "listing KubeVirt objects: broken"},
		"bindings":            {"get", "clusterrolebindings", "reading ClusterRoleBinding kubevirt-controller: broken"},
		"service accounts":    {"get", "serviceaccounts", "reading service account kubevirt/kubevirt-controller: broken"},
		"writing the binding": {"patch", "clusterrolebindings", "writing the subjects of ClusterRoleBinding stencil-exempt-users: broken"},
		"writing statuses":    {"", "", "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, []string{"kubevirt-controller"}, binding("stencil-exempt-users", subject("former", "kubevirt-controller")),
				binding("kubevirt-controller", subject("kubevirt", "kubevirt-controller")), account("kubevirt", "kubevirt-controller"))
			c.installKubeVirt("kubevirt")
			fails := func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, broken }
			if tc.verb == "" {
				c.approvals.fail = broken
			} else {
				c.client.PrependReactor(tc.verb, tc.resource, fails)
				c.kubevirts.PrependReactor(tc.verb, tc.resource, fails)
			}
			_, err := c.reconciler.Reconcile(t.Context(), reconcile.Request{})
			if err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
			stored, err := c.client.Tracker().Get(rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"), "", "stencil-exempt-users")
			if err != nil {
				t.Fatal(err)
			}
			if got := stored.(*rbacv1.ClusterRoleBinding).Subjects[0].Namespace; tc.verb != "" && got != "former" {
				t.Errorf("the binding has changed: %s", got)
			}
		})
	}
}

func TestEventsHaveRoom(t *testing.T) {
	c := newCluster(t, nil)
	c.reconciler.event(corev1.EventTypeWarning, reasonUnknown, strings.Repeat("x", 2000))
	if got := <-c.recorder.Events; len(got) > 1024+len("Warning ExemptUsersUnknown ") {
		t.Errorf("%d bytes", len(got))
	}
}
