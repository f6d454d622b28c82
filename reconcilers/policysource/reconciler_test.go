package policysource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/reconcilers/internal/policyapply"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
	"github.com/vmstencil/stencil/reconcilers/policysource/artifact"
)

// shelf is a registry: what a tag refers to, and artifacts by their digests.
type shelf struct {
	tag   string
	all   map[string]*artifact.Artifact
	fails error
}

func (s *shelf) Get(_ context.Context, request artifact.Request) (*artifact.Artifact, error) {
	if s.fails != nil && request.Digest == "" {
		return nil, s.fails
	}
	digest := request.Digest
	if digest == "" {
		digest = s.tag
	}
	return s.all[digest], nil
}

// world is a simulated cluster with one source. It counts the writes of the reconciler, and one of them fails.
type world struct {
	t      *testing.T
	client client.Client
	shelf  *shelf
	clock  *clocktesting.FakePassiveClock
	// writes is their number; the one with the number broken fails.
	writes, broken int
	// before is called before each write, if it is set.
	before     func()
	reconciler *Reconciler
	registry   *prometheus.Registry
}

// counted checks the metrics: the reason of the source, none if it is empty.
func (w *world) counted(reason string) {
	w.t.Helper()
	want := ""
	if reason != "" {
		want = "# HELP stencil_policy_source_state 1 for the reason of condition Ready of each VirtualMachinePolicySource.\n# TYPE stencil_policy_source_state gauge\n" +
			`stencil_policy_source_state{reason="` + reason + `",source="platform"} 1` + "\n"
	}
	if err := testutil.GatherAndCompare(w.registry, strings.NewReader(want)); err != nil {
		w.t.Error(err)
	}
}

var errBroken = errors.New("the connection is lost")

func (w *world) write() error {
	if w.before != nil {
		w.before()
	}
	if w.writes++; w.writes == w.broken {
		return errBroken
	}
	return nil
}

// Apply implements Statuses.
func (w *world) Apply(ctx context.Context, _ statuswriter.Object, _ string, status any) error {
	if err := w.write(); err != nil {
		return err
	}
	source := w.source()
	source.Status = *status.(*v1alpha1.VirtualMachinePolicySourceStatus)
	return w.client.Status().Update(ctx, source)
}

func newWorld(t *testing.T, spec v1alpha1.VirtualMachinePolicySourceSpec) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	source := &v1alpha1.VirtualMachinePolicySource{Spec: spec}
	source.Name, source.Generation = "platform", 1
	w := &world{t: t, shelf: &shelf{all: map[string]*artifact.Artifact{}}, clock: clocktesting.NewFakePassiveClock(now)}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(source).WithObjects(source).Build()
	w.restart()
	return w
}

// restart is a new manager.
func (w *world) restart() {
	account := interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{
		Apply: func(ctx context.Context, to client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			if err := w.write(); err != nil {
				return err
			}
			return to.Apply(ctx, object, options...)
		},
		Patch: func(ctx context.Context, to client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := w.write(); err != nil {
				return err
			}
			return to.Patch(ctx, object, patch, options...)
		},
		Delete: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := w.write(); err != nil {
				return err
			}
			return to.Delete(ctx, object, options...)
		},
	})
	w.registry = prometheus.NewRegistry()
	var err error
	w.reconciler, err = New(Options{
		Namespace: "stencil-system", Reader: w.client, Account: account, Registry: w.shelf, Statuses: w,
		Recorder: events.NewFakeRecorder(100), Clock: w.clock, Registerer: w.registry,
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) reconcile() error {
	_, err := w.reconciler.Reconcile(context.WithoutCancel(w.t.Context()), reconcile.Request{NamespacedName: types.NamespacedName{Name: "platform"}})
	return err
}

func (w *world) source() *v1alpha1.VirtualMachinePolicySource {
	w.t.Helper()
	source := &v1alpha1.VirtualMachinePolicySource{}
	if err := w.client.Get(context.WithoutCancel(w.t.Context()), types.NamespacedName{Name: "platform"}, source); err != nil {
		w.t.Fatal(err)
	}
	return source
}

// line is the reason of condition Ready, and the stored policies with their digests.
func (w *world) line() string {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(policyapply.Kind.GroupVersion().WithKind(policyapply.Kind.Kind + "List"))
	if err := w.client.List(context.WithoutCancel(w.t.Context()), list); err != nil {
		w.t.Fatal(err)
	}
	parts := []string{""}
	if ready := meta.FindStatusCondition(w.source().Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		parts[0] = ready.Reason
	}
	for i := range list.Items {
		o := &list.Items[i]
		parts = append(parts, fmt.Sprintf("%s=%s", o.GetName(), o.GetAnnotations()[v1alpha1.AnnotationPolicySourceDigest]))
	}
	slices.Sort(parts[1:])
	return strings.Join(parts, " ")
}

func (w *world) wants(want string) {
	w.t.Helper()
	if got := w.line(); got != want {
		w.t.Errorf("got %q, want %q", got, want)
	}
}

// publish has the tag refer to an artifact.
func (w *world) publish(a *artifact.Artifact) { w.shelf.all[a.Digest], w.shelf.tag = a, a.Digest }

// TestAnInterruptedRollOutIsCompleted has each write of a roll-out fail, and the manager restart after it.
func TestAnInterruptedRollOutIsCompleted(t *testing.T) {
	for broken := 1; ; broken++ {
		w := newWorld(t, v1alpha1.VirtualMachinePolicySourceSpec{Prune: true})
		w.publish(made("sha256:old", "a", "b"))
		if err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		w.wants("Applied a=sha256:old b=sha256:old")
		w.publish(made("sha256:new", "b", "c"))
		w.clock.SetTime(now.Add(defaultInterval))
		w.writes, w.broken = 0, broken
		err := w.reconcile()
		if err == nil {
			if w.writes < 8 {
				t.Errorf("there were %d writes only", w.writes)
			}
			w.wants("Applied b=sha256:new c=sha256:new")
			return
		}
		if !errors.Is(err, errBroken) {
			t.Fatalf("write %d: %v", broken, err)
		}
		w.restart()
		if err := w.reconcile(); err != nil {
			t.Fatalf("after write %d: %v", broken, err)
		}
		w.wants("Applied b=sha256:new c=sha256:new")
		if got := w.source().Status.Digest; got != "sha256:new" {
			t.Errorf("after write %d the status has %s", broken, got)
		}
	}
}

// TestWhatIsAppliedRemains tests what an artifact changes that cannot be applied, also after a restart: nothing.
func TestWhatIsAppliedRemains(t *testing.T) {
	w := newWorld(t, v1alpha1.VirtualMachinePolicySourceSpec{})
	w.publish(made("sha256:old", "a"))
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	next := now
	for _, tc := range []struct {
		err  error
		want string
	}{
		{errors.New("connection refused"), "CheckFailed a=sha256:old"},
		{artifact.ErrNotSigned, "NotSigned a=sha256:old"},
		{&artifact.InvalidError{Problem: errors.New("layer 0")}, "InvalidArtifact a=sha256:old"},
	} {
		for _, restart := range []bool{false, true} {
			if restart {
				w.restart()
			}
			next = next.Add(time.Hour)
			w.clock.SetTime(next)
			w.shelf.fails = tc.err
			if err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			w.wants(tc.want)
			w.counted(strings.Fields(tc.want)[0])
			if got := w.source().Status.Digest; got != "sha256:old" {
				t.Errorf("the status has %s", got)
			}
		}
	}
	// A policy that is deleted meanwhile comes back, by the digest of the status.
	policy := &unstructured.Unstructured{}
	policy.SetGroupVersionKind(policyapply.Kind)
	policy.SetName("a")
	if err := w.client.Delete(context.WithoutCancel(t.Context()), policy); err != nil {
		t.Fatal(err)
	}
	w.restart()
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.wants("InvalidArtifact a=sha256:old")
	w.shelf.fails = nil
	w.publish(made("sha256:new", "b"))
	w.clock.SetTime(next.Add(time.Hour))
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.wants("Applied a=sha256:old b=sha256:new")
	w.counted("Applied")
	if left := w.source().Status.Left; !slices.Equal(left, []string{"a"}) {
		t.Errorf("left are %v", left)
	}
	if err := w.client.Delete(context.WithoutCancel(t.Context()), w.source()); err != nil {
		t.Fatal(err)
	}
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.counted("")
}

// TestADeletedSourceAppliesNothing deletes or suspends a source during the dry runs of its policies.
func TestADeletedSourceAppliesNothing(t *testing.T) {
	for name, change := range map[string]func(w *world, source *v1alpha1.VirtualMachinePolicySource) error{
		"deleted": func(w *world, source *v1alpha1.VirtualMachinePolicySource) error {
			return w.client.Delete(context.WithoutCancel(t.Context()), source)
		},
		"changed": func(w *world, source *v1alpha1.VirtualMachinePolicySource) error {
			source.Spec.Suspended, source.Generation = true, source.Generation+1
			return w.client.Update(context.WithoutCancel(t.Context()), source)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, v1alpha1.VirtualMachinePolicySourceSpec{})
			w.publish(made("sha256:new", "a", "b"))
			w.before = func() {
				w.before = nil
				if err := change(w, w.source()); err != nil {
					t.Error(err)
				}
			}
			if err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			if w.writes != 2 {
				t.Errorf("there were %d writes instead of two dry runs", w.writes)
			}
			w.counted("")
		})
	}
}
