package readiness

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
)

const digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func TestWhatIsReportedAboutImages(t *testing.T) {
	image := func(name, golden, digest, imported, stale string) bootSource {
		return bootSource{in(sources.DataSource, name), sources.Image{GoldenImage: golden, Digest: digest, ImportedAt: imported, StaleAfter: stale}}
	}
	const (
		usable  = "everything that the template depends on can be used"
		morning = "2026-11-22T08:00:00Z"
		evening = "2026-11-22T20:00:00+00:00"
		night   = "2026-11-23T00:00:00+01:00"
	)
	for _, tc := range []struct {
		name     string
		images   []bootSource
		sources  string
		wantKind string // STATUS/REASON MESSAGE
		next     string
	}{
		{name: "no image", sources: usable},
		{
			name: "an image without a limit", images: []bootSource{image("fedora", "fedora", digestA, morning, "")},
			sources: usable + "; DataSource golden/fedora has image " + digestA + " of GoldenImage fedora imported at 2026-11-22T08:00:00Z",
		},
		{
			name: "an image within its limit", images: []bootSource{image("fedora", "", digestA, "", evening)},
			sources:  usable + "; DataSource golden/fedora has image " + digestA,
			wantKind: "False/Fresh no image is older than its limit; the next limit is 2026-11-22T20:00:00Z", next: "2026-11-22T20:00:00Z",
		},
		{
			name: "an image at its limit", images: []bootSource{image("fedora", "fedora", digestA, morning, "2026-11-22T12:00:00Z")},
			sources:  usable + "; DataSource golden/fedora has image " + digestA + " of GoldenImage fedora imported at 2026-11-22T08:00:00Z",
			wantKind: "True/Stale DataSource golden/fedora has image " + digestA + " of GoldenImage fedora imported at 2026-11-22T08:00:00Z; a newer one was due by 2026-11-22T12:00:00Z",
		},
		{
			name:     "one of several images is stale, and the next limit is the earliest",
			images:   []bootSource{image("a", "", "", "", night), image("b", "", "", "", evening), image("c", "", digestA, "", morning)},
			sources:  usable + "; DataSource golden/a, DataSource golden/b, DataSource golden/c has image " + digestA,
			wantKind: "True/Stale DataSource golden/c has image " + digestA + "; a newer one was due by 2026-11-22T08:00:00Z", next: "2026-11-22T20:00:00Z",
		},
		{
			name: "malformed annotations", images: []bootSource{image("fedora", "No Name", "latest", "yesterday", "tomorrow")},
			sources: usable + "; DataSource golden/fedora (ignored because they are malformed: annotations stencil.kubevirt.io/digest, " +
				"stencil.kubevirt.io/golden-image, stencil.kubevirt.io/imported-at, stencil.kubevirt.io/stale-after)",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conditions := decide(observation{images: tc.images, now: noon})
			if got := meta.FindStatusCondition(conditions, "SourcesReady").Message; got != tc.sources {
				t.Errorf("SourcesReady has message %q, want %q", got, tc.sources)
			}
			got := ""
			if stale := meta.FindStatusCondition(conditions, "BootSourceStale"); stale != nil {
				got = string(stale.Status) + "/" + stale.Reason + " " + stale.Message
			}
			if got != tc.wantKind {
				t.Errorf("BootSourceStale is %q, want %q", got, tc.wantKind)
			}
			if !meta.IsStatusConditionTrue(conditions, "Ready") {
				t.Error("the template is not ready")
			}
			next := ""
			if _, at := staleness(tc.images, noon); !at.IsZero() {
				next = stamp(at)
			}
			if next != tc.next {
				t.Errorf("changes next at %q, want %q", next, tc.next)
			}
		})
	}
}

func TestABootSourceTurnsStaleWithoutAnotherEvent(t *testing.T) {
	w, r, _ := start(t, vmt(t, "box", fromFedora))
	box := types.NamespacedName{Namespace: "golden", Name: "box"}
	// The annotations may be on the DataSource behind the one that the template names.
	w.put(in(sources.DataSource, "fedora"), sources.Object{
		ReadyReported: true, Ready: true, To: in(sources.DataSource, "fedora-amd64"), Image: sources.Image{GoldenImage: "fedora"},
	})
	w.put(in(sources.DataSource, "fedora-amd64"), sources.Object{
		ReadyReported: true, Ready: true, To: in(sources.Claim, "disk"), Spec: in(sources.Claim, "disk"), Image: sources.Image{Digest: digestA, StaleAfter: "2026-11-22T13:00:00Z"},
	})
	w.put(in(sources.Claim, "disk"), sources.Object{Ready: true})
	reconcileBox := func() reconcile.Result {
		t.Helper()
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: box})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	if got := reconcileBox(); got.RequeueAfter != time.Hour {
		t.Errorf("requeued after %s, want the time to the limit", got.RequeueAfter)
	}
	if got := meta.FindStatusCondition(w.templates[box].Status.Conditions, "BootSourceStale"); got == nil || got.Status != "False" {
		t.Fatalf("before the limit: %v", got)
	}
	r.options.Clock.(*clocktesting.FakeClock).Step(time.Hour)
	if got := reconcileBox(); got.RequeueAfter != 0 {
		t.Errorf("requeued after %s although nothing will change", got.RequeueAfter)
	}
	if got := meta.FindStatusCondition(w.templates[box].Status.Conditions, "BootSourceStale"); got.Status != "True" || !strings.HasPrefix(got.Message, "DataSource golden/fedora has image") {
		t.Errorf("after the limit: %v", got)
	}
	w.put(in(sources.DataSource, "fedora-amd64"), sources.Object{ReadyReported: true, Ready: true, To: in(sources.Claim, "disk"), Spec: in(sources.Claim, "disk")})
	reconcileBox()
	if got := meta.FindStatusCondition(w.templates[box].Status.Conditions, "BootSourceStale"); got != nil {
		t.Errorf("without a limit: %v", got)
	}
}
