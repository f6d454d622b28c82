package audit

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
)

// TestWhatChangedIsAuditedAlone checks that a change in a governed namespace causes one list of that namespace, and that such audits take
// at most a tenth of the time.
func TestWhatChangedIsAuditedAlone(t *testing.T) {
	source := &fakePager{vms: []string{"free/x", "team-a/1", "team-a/2", "team-b/1"}}
	seen := &fakeObserved{}
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	metrics, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{
		options: Options{Templates: noTemplateCache{}, Observed: seen, Clock: clock},
		vms:     source, instances: &fakePager{}, claims: &fakePager{}, kubevirts: &fakePager{}, metrics: metrics, lastResults: newLastResults(), pending: map[string]bool{},
	}
	r.reportless.Store(true)
	reconciled := func(wantReads ...string) reconcile.Result {
		t.Helper()
		source.reads = nil
		result, err := r.Reconcile(t.Context(), changed)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wantReads, source.reads); diff != "" {
			t.Errorf("lists (-want +got):\n%s", diff)
		}
		return result
	}

	seen.changed = []string{"team-a"}
	reconciled()
	if len(seen.changed) != 1 {
		t.Error("what changed before the first audit was taken by no audit")
	}
	object := approvalObject("a")
	r.last = &lastAudit{
		snapshot: coverage.Snapshot{
			Approvals:  []coverage.Approval{{Approval: coverage.Compile(object), Object: object}},
			Namespaces: []coverage.Namespace{{Name: "free"}, {Name: "team-a"}, {Name: "team-b"}},
		},
		found: byNamespace{"team-b": results{vms: 7, approvals: counts{"a": {conforming: 7}}}},
	}
	reconciled("team-a@")
	if got := r.last.found.total(); got.vms != 9 || got.approvals["a"].conforming != 7 || got.approvals["a"].violating != 2 {
		t.Errorf("%d machines, %+v", got.vms, got.approvals["a"])
	}
	if one, _ := r.lastResults.of(r.last.snapshot.Approvals[0]); one == nil || one.count.violating != 2 {
		t.Errorf("the approval is told %+v", one)
	}
	if got := testutil.ToFloat64(metrics.changed); got != 1 {
		t.Errorf("%v namespaces are counted", got)
	}
	seen.changed = []string{"free"}
	reconciled()

	// The pause after an audit delays the next one, but no change is lost.
	r.last.rest = clock.Now().Add(3 * time.Second)
	seen.changed = []string{"team-a"}
	if result := reconciled(); result.RequeueAfter != 3*time.Second {
		t.Errorf("it comes again after %v", result.RequeueAfter)
	}
	clock.SetTime(r.last.rest)
	source.vms = []string{"team-b/1"}
	reconciled("team-a@")
	if got := slices.Sorted(maps.Keys(r.last.found)); !slices.Equal(got, []string{"team-b"}) {
		t.Errorf("a namespace without machines is still counted: %v", got)
	}

	// Namespaces of a failed audit are audited again.
	seen.changed = []string{"team-b"}
	source.failures = []error{apierrors.NewForbidden(vmVersion.WithResource("virtualmachines").GroupResource(), "", nil)}
	if _, err := r.Reconcile(t.Context(), changed); err == nil || len(r.pending) != 1 {
		t.Errorf("got %v, pending %v", err, r.pending)
	}
	if got := testutil.ToFloat64(metrics.failures); got != 1 {
		t.Errorf("%v failures are counted", got)
	}
	reconciled("team-b@")
	if got := r.last.found["team-b"]; got.vms != 1 || len(r.pending) > 0 {
		t.Errorf("found %+v, pending %v", got, r.pending)
	}
}

// noTemplateCache is a TemplateCache without templates.
type noTemplateCache struct{ noTemplates }

func (noTemplateCache) List() []*templatecache.Template { return nil }
func (noTemplateCache) Synced() bool                    { return true }
func (noTemplateCache) Changed() <-chan struct{}        { return nil }
