package policystatus

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policycache "github.com/vmstencil/stencil/cache/policies"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
)

// policies is a fake cache.
type policies struct {
	states  []policycache.State
	stirred chan struct{}
}

func (p *policies) Synced() bool                   { return true }
func (p *policies) States() []policycache.State    { return p.states }
func (p *policies) StatesChanged() <-chan struct{} { return p.stirred }

// writer stores applied objects as JSON by field manager.
type writer struct {
	client.SubResourceClient
	applied map[string]string
}

func (w *writer) SubResource(string) client.SubResourceClient { return w }

func (w *writer) Apply(_ context.Context, object runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
	var o client.SubResourceApplyOptions
	for _, each := range options {
		each.ApplyToSubResourceApply(&o)
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	if w.applied == nil {
		w.applied = map[string]string{}
	}
	w.applied[o.FieldManager] = string(raw)
	return nil
}

func TestTheLeaderWritesWhatHasChanged(t *testing.T) {
	state := observed().State
	w, recorder := &writer{}, events.NewFakeRecorder(10)
	cache := &policies{states: []policycache.State{state}}
	r := New(Options{Policies: cache, Client: w, Recorder: recorder, Clock: clocktesting.NewFakePassiveClock(noon)})
	run := func() {
		t.Helper()
		w.applied = nil
		if _, err := r.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	run()
	var written v1alpha1.VirtualMachinePolicy
	if err := json.Unmarshal([]byte(w.applied[v1alpha1.FieldManagerPolicyStatus]), &written); err != nil {
		t.Fatal(err)
	}
	if written.Name != "one" || written.UID != "uid" || written.Status.ActiveGeneration != 3 {
		t.Errorf("written: %+v", written)
	}
	if len(recorder.Events) != 1 {
		t.Errorf("%d events, want 1", len(recorder.Events))
	}
	// Fields of other writers cause no write.
	written.Status.Audit = &v1alpha1.PolicyAudit{Generation: 1}
	state.Object.Status = written.Status
	run()
	if w.applied != nil {
		t.Errorf("written again: %v", w.applied)
	}
	// The entry of a replica that no longer exists is removed under its field manager.
	state.Object.Status.Replicas = []v1alpha1.PolicyReplica{replica("gone", "d2", 1, longSilent), replica("here", "d2", 1)}
	run()
	want := map[string]string{
		"stencil-policy-replica-gone": `{"apiVersion":"stencil.kubevirt.io/v1alpha1","kind":"VirtualMachinePolicy","metadata":{"name":"one","uid":"uid"},"status":{}}`,
	}
	if diff := cmp.Diff(want, w.applied); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	// A version that is not compiled yet causes no write.
	state.Object.Status = v1alpha1.VirtualMachinePolicyStatus{}
	cache.states[0].Built = 2
	run()
	if w.applied != nil {
		t.Errorf("written of a version that is not compiled yet: %v", w.applied)
	}
}

// routes returns the same result for every policy.
type routes struct{ open, known bool }

func (r *routes) Open(*v1alpha1.PolicyMatch) (open, known bool) { return r.open, r.known }
func (r *routes) Changed() <-chan struct{}                      { return nil }

func TestWhetherRequestsAreSent(t *testing.T) {
	state := observed().State
	was := statusOf(observed())
	for name, tc := range map[string]struct {
		routes *routes
		status v1alpha1.VirtualMachinePolicyStatus
		want   bool
	}{
		"they are":     {routes: &routes{true, true}, want: true},
		"they are not": {routes: &routes{false, true}, status: was, want: false},
		"a new leader believes what is written, not to alarm anybody": {routes: &routes{}, status: was, want: true},
		"of a new policy nothing is written":                          {routes: &routes{}, want: false},
	} {
		state.Object.Status = tc.status
		if got := New(Options{Routes: tc.routes}).routed(&state); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	if !New(Options{}).routed(&state) {
		t.Error("nobody looks after the webhooks, and yet they are said to be missing")
	}
}

func TestAReplicaWritesItsOwnEntry(t *testing.T) {
	state := observed().State
	state.Statistics = policyset.Statistics{Count: 7, P50Microseconds: 3, P99Microseconds: 4}
	w := &writer{}
	r := NewReporter(ReporterOptions{
		Name: "pod", Policies: &policies{states: []policycache.State{state}}, Client: w, Logger: logr.Discard(), Clock: clocktesting.NewFakeClock(noon),
	})
	r.report(t.Context())
	want := map[string]string{
		"stencil-policy-replica-pod": `{"apiVersion":"stencil.kubevirt.io/v1alpha1","kind":"VirtualMachinePolicy","metadata":{"name":"one","uid":"uid"},` +
			`"status":{"replicas":[{"activeDigest":"d3","count":7,"lastUpdateTime":"2026-06-01T12:00:00Z","name":"pod","p50Microseconds":3,"p99Microseconds":4}]}}`,
	}
	if diff := cmp.Diff(want, w.applied); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	state.Object.Status.Replicas = []v1alpha1.PolicyReplica{{Name: "pod", ActiveDigest: "d3"}}
	state.Object.Status.Replicas[0].LastUpdateTime.Time = noon
	w.applied = nil
	if r.report(t.Context()); w.applied != nil {
		t.Errorf("written again at once: %v", w.applied)
	}
}

func TestAReplicaThatEndsRemovesAnEntryThatItHasNotSeenYet(t *testing.T) {
	state := observed().State
	state.Statistics = policyset.Statistics{Count: 7}
	w := &writer{}
	r := NewReporter(ReporterOptions{
		Name: "pod", Policies: &policies{states: []policycache.State{state}}, Client: w, Logger: logr.Discard(), Clock: clocktesting.NewFakeClock(noon),
	})
	r.report(t.Context())
	w.applied = nil
	r.leave(t.Context())
	if _, removed := w.applied["stencil-policy-replica-pod"]; !removed {
		t.Error("the entry stays, because the watched object is older than the write")
	}
}

func TestAReplicaThatEndsTakesItsEntriesAway(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	state := observed(replicas(replica("pod", "d3", 1), replica("other", "d3", 1))).State
	cache, w := &policies{stirred: make(chan struct{}), states: []policycache.State{state}}, &writer{}
	r := NewReporter(ReporterOptions{Name: "pod", Policies: cache, Client: w, Logger: logr.Discard(), Clock: clock})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	close(cache.stirred)
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
		want := map[string]string{
			"stencil-policy-replica-pod": `{"apiVersion":"stencil.kubevirt.io/v1alpha1","kind":"VirtualMachinePolicy","metadata":{"name":"one","uid":"uid"},"status":{}}`,
		}
		if diff := cmp.Diff(want, w.applied); diff != "" {
			t.Errorf("it does not take its entry away (-want +got):\n%s", diff)
		}
	case <-time.After(20 * time.Second):
		t.Error("it does not end")
	}
}
