package readiness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
)

// recorded is an event recorder that stores events as text.
type recorded []string

func (r *recorded) Eventf(about, related runtime.Object, kind, reason, _, note string, arguments ...any) {
	object := about.(*metav1.PartialObjectMetadata)
	text := fmt.Sprintf("%s %s/%s %s: %s %s: ", object.Kind, object.Namespace, object.Name, object.UID, kind, reason) + fmt.Sprintf(note, arguments...)
	if related != nil {
		text += " (" + related.(*metav1.PartialObjectMetadata).Name + ")"
	}
	*r = append(*r, text)
}

func TestTheCauseOfAFlip(t *testing.T) {
	volume := func(kind sources.Kind, name string, state v1beta1.SourceState, message string) v1beta1.TemplateVolume {
		return v1beta1.TemplateVolume{Volume: "root", Kind: string(kind), Namespace: "golden", Name: name, SourceStatus: v1beta1.SourceStatus{State: state, Message: message}}
	}
	ready := metav1.Condition{Status: "True", Reason: v1beta1.ReasonReconciled}
	unready := func(message string) metav1.Condition {
		return metav1.Condition{Status: "False", Reason: v1beta1.ReasonSourcesNotReady, Message: message}
	}
	changed := unready("volume root: DataSource golden/fedora does not exist")
	changed.ObservedGeneration = 1
	for _, tc := range []struct {
		name   string
		stored *metav1.Condition
		now    metav1.Condition
		found  []v1beta1.TemplateVolume
		// want is the cause; none means that there is no flip.
		want string
	}{
		{"the same status", &ready, ready, nil, "none"},
		{"ready from the start", nil, ready, nil, "none"},
		{"not checked yet", nil, metav1.Condition{Status: "Unknown", Reason: v1beta1.ReasonNotTried}, nil, "none"},
		{"ready after the first check", &metav1.Condition{Status: "Unknown", Reason: v1beta1.ReasonNotTried}, ready, nil, "none"},
		{"checked again", &ready, metav1.Condition{Status: "Unknown", Reason: v1beta1.ReasonNotEvaluated}, nil, "none"},
		{"denied by the first check", &metav1.Condition{Status: "Unknown", Reason: v1beta1.ReasonNotEvaluated}, metav1.Condition{Status: "False", Reason: v1beta1.ReasonPolicyViolations}, nil, " : "},
		{"not ready from the start", nil, unready(""), []v1beta1.TemplateVolume{volume(sources.DataSource, "fedora", "NotFound", "it does not exist")}, "DataSource golden/fedora: it does not exist"},
		{
			"the worst source is the cause", &ready, unready(""),
			[]v1beta1.TemplateVolume{volume(sources.Claim, "data", "Importing", "soon"), volume(sources.DataSource, "fedora", "NotFound", "gone")}, "DataSource golden/fedora: gone",
		},
		{"an unknown source", &ready, metav1.Condition{Status: "Unknown", Reason: v1beta1.ReasonSourceUnknown}, []v1beta1.TemplateVolume{volume(sources.Snapshot, "s", "Unknown", "not served")}, "VolumeSnapshot golden/s: not served"},
		{
			"a source that the message names is ready again", new(unready("volume root: DataSource golden/fedora-41 does not exist")), ready,
			[]v1beta1.TemplateVolume{volume(sources.DataSource, "fedora", "Ready", ""), volume(sources.DataSource, "fedora-41", "Ready", ""), volume("Blank", "", "Ready", "")},
			"DataSource golden/fedora-41: ",
		},
		{
			"a source that the message does not name", new(unready("the cluster does not serve the kind")), ready,
			[]v1beta1.TemplateVolume{volume("Blank", "", "Ready", ""), volume("HTTP", "", "Remote", ""), volume(sources.Snapshot, "s", "Ready", "")}, "VolumeSnapshot golden/s: ",
		},
		{"the template was changed", &changed, ready, []v1beta1.TemplateVolume{volume(sources.DataSource, "fedora", "Ready", "")}, " : "},
		{"a policy denies it", &ready, metav1.Condition{Status: "False", Reason: v1beta1.ReasonPolicyViolations}, []v1beta1.TemplateVolume{volume(sources.DataSource, "fedora", "Ready", "")}, " : "},
		{"a policy allows it again", &metav1.Condition{Status: "False", Reason: v1beta1.ReasonPolicyViolations}, ready, []v1beta1.TemplateVolume{volume(sources.DataSource, "fedora", "Ready", "")}, " : "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, is := flipOf(&templatecache.Template{Namespace: "golden", Name: "box"}, tc.stored, tc.now, v1beta1.TemplateSources{Volumes: tc.found})
			text := "none"
			if is {
				text = got.cause.String() + ": " + got.detail
			}
			if text != tc.want {
				t.Errorf("cause %q, want %q", text, tc.want)
			}
		})
	}
}

func TestAnEventNamesTheFirstTemplatesAndFits(t *testing.T) {
	fedora := in(sources.DataSource, "fedora")
	flips := func(count int, ready metav1.ConditionStatus, cause sources.Key, detail string) (all []flip) {
		for i := range count {
			all = append(all, flip{
				template: types.NamespacedName{Namespace: "golden", Name: fmt.Sprint("box-", i)}, version: "7", cause: cause, detail: detail,
				ready: metav1.Condition{Status: ready, Reason: "R", Message: "volume root: " + detail},
			})
		}
		return all
	}
	for _, tc := range []struct {
		name  string
		flips []flip
		want  report
	}{
		{
			"one template", flips(1, "False", fedora, "it does not exist"),
			report{kind: corev1.EventTypeWarning, reason: "R", note: "volume root: it does not exist"},
		},
		{
			"several templates", flips(2, "Unknown", fedora, "it does not exist"),
			report{kind: corev1.EventTypeWarning, reason: reasonTemplatesNotReady, note: "2 templates are not ready: golden/box-0, golden/box-1: it does not exist"},
		},
		{
			"many templates", flips(2000, "True", fedora, ""),
			report{
				kind: corev1.EventTypeNormal, reason: reasonTemplatesReady,
				note: "2000 templates are ready: golden/box-0, golden/box-1, golden/box-10, golden/box-100, golden/box-1000 and 1995 more",
			},
		},
		{"a long message", flips(1, "False", fedora, strings.Repeat("ä", 4000)), report{kind: corev1.EventTypeWarning, reason: "R", note: "volume root: " + strings.Repeat("ä", 504) + "…"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := reportOf(tc.flips, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "DataSource"}, ObjectMeta: metav1.ObjectMeta{Namespace: "golden"}})
			if len(got.note) > 1024 {
				t.Errorf("%d bytes", len(got.note))
			}
			if diff := cmp.Diff([]string{tc.want.kind, tc.want.reason, tc.want.note}, []string{got.kind, got.reason, got.note}); diff != "" {
				t.Error(diff)
			}
			wantKind := "VirtualMachineTemplate"
			if len(tc.flips) > 1 {
				wantKind = "DataSource"
				if got.related.ResourceVersion != "7" {
					t.Errorf("related to %v", got.related)
				}
			}
			if got.about.Kind != wantKind {
				t.Errorf("about a %s", got.about.Kind)
			}
		})
	}
}

func TestAnEventIsInTheNamespaceOfTheTemplates(t *testing.T) {
	flips := []flip{{template: types.NamespacedName{Namespace: "golden", Name: "a"}}, {template: types.NamespacedName{Namespace: "golden", Name: "b"}}}
	for _, tc := range []struct {
		name   string
		source metav1.ObjectMeta
		want   string
	}{
		{"a source of the namespace", metav1.ObjectMeta{Namespace: "golden", UID: "uid"}, "DataSource"},
		{"a source of the namespace that does not exist", metav1.ObjectMeta{Namespace: "golden"}, "DataSource"},
		{"a source of another namespace", metav1.ObjectMeta{Namespace: "images", UID: "uid"}, "VirtualMachineTemplate"},
		{"a source of another namespace that does not exist", metav1.ObjectMeta{Namespace: "images"}, "VirtualMachineTemplate"},
		{"a source of the cluster", metav1.ObjectMeta{UID: "uid"}, "VirtualMachineTemplate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := reportOf(flips, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "DataSource"}, ObjectMeta: tc.source})
			if got.about.Kind != tc.want || got.about.Namespace != "golden" || got.reason != reasonTemplatesNotReady {
				t.Errorf("about a %s of %s with reason %s, want a %s", got.about.Kind, got.about.Namespace, got.reason, tc.want)
			}
		})
	}
}

// TestTemplatesOfSeveralNamespacesAreSeveralEvents has templates of two namespaces flip because of one DataSource: neither namespace shows names of the other.
func TestTemplatesOfSeveralNamespacesAreSeveralEvents(t *testing.T) {
	clock, events := clocktesting.NewFakeClock(noon), &recorded{}
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	a := newAnnouncer(events, m, clock)
	for _, namespace := range []string{"golden", "shop"} {
		for _, name := range []string{"a", "b"} {
			a.add(flip{template: types.NamespacedName{Namespace: namespace, Name: name}, cause: in(sources.DataSource, "fedora"), ready: metav1.Condition{Status: "True"}})
		}
	}
	clock.Step(quiet)
	a.report(func(key sources.Key) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "DataSource"}, ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	}, false)
	slices.Sort(*events)
	want := []string{
		"DataSource golden/fedora : Normal TemplatesReady: 2 templates are ready: golden/a, golden/b (a)",
		"VirtualMachineTemplate shop/a : Normal TemplatesReady: 2 templates are ready: shop/a, shop/b",
	}
	if diff := cmp.Diff(want, []string(*events)); diff != "" {
		t.Error(diff)
	}
}

func TestFlipsOfOneCauseAreOneEvent(t *testing.T) {
	const templates = 2000
	var all []*v1beta1.VirtualMachineTemplate
	for i := range templates {
		all = append(all, vmt(t, fmt.Sprintf("box-%04d", i), fromFedora))
	}
	w, r, _ := start(t, all...)
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	clock, events := r.options.Clock.(*clocktesting.FakeClock), &recorded{}
	r.announcer = newAnnouncer(events, m, clock)
	reconcileAll := func(want ...string) {
		t.Helper()
		*events = nil
		for _, one := range all {
			w.reconcile(r, one.Name)
		}
		r.announcer.report(r.identify, false)
		if len(*events) > 0 {
			t.Errorf("events before the time: %q", *events)
		}
		clock.Step(quiet)
		r.announcer.report(r.identify, false)
		if diff := cmp.Diff(want, []string(*events)); diff != "" {
			t.Error(diff)
		}
	}
	const named = "golden/box-0000, golden/box-0001, golden/box-0002, golden/box-0003, golden/box-0004 and 1995 more"
	reconcileAll("DataSource golden/fedora : Warning TemplatesNotReady: 2000 templates are not ready: " + named + ": DataSource golden/fedora does not exist (box-0000)")
	w.put(in(sources.DataSource, "fedora"), sources.Object{UID: "uid-7", ReadyReported: true, Ready: true, To: in(sources.Claim, "disk")})
	w.put(in(sources.Claim, "disk"), sources.Object{Ready: true})
	reconcileAll("DataSource golden/fedora uid-7: Normal TemplatesReady: 2000 templates are ready: " + named + " (box-0000)")
	want := `
# HELP stencil_template_readiness_events_total Events about changes of the readiness of VirtualMachineTemplates, by the object that they are about: a template, or the source of several ones.
# TYPE stencil_template_readiness_events_total counter
stencil_template_readiness_events_total{object="source"} 2
stencil_template_readiness_events_total{object="template"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "stencil_template_readiness_events_total"); err != nil {
		t.Error(err)
	}
}

func TestFlipsAreReportedAtTheLatestAfterAWhileAndAtTheEnd(t *testing.T) {
	clock, events := clocktesting.NewFakeClock(noon), &recorded{}
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	a := newAnnouncer(events, m, clock)
	none := func(sources.Key) *metav1.PartialObjectMetadata { return &metav1.PartialObjectMetadata{} }
	add := func(number int) {
		a.add(flip{template: types.NamespacedName{Namespace: "golden", Name: fmt.Sprint("box-", number)}, cause: in(sources.DataSource, "fedora"), ready: metav1.Condition{Status: "True"}})
	}
	for began := clock.Now(); len(*events) == 0; clock.Step(time.Second) {
		add(int(clock.Since(began).Seconds()))
		a.report(none, false)
		if clock.Since(began) > longest {
			t.Fatal("no event while flips continue")
		}
	}
	if !strings.Contains((*events)[0], "301 templates are ready") {
		t.Errorf("got %q", *events)
	}
	add(1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	a.run(ended, none)
	if len(*events) != 2 || !strings.HasPrefix((*events)[1], "VirtualMachineTemplate golden/box-1") {
		t.Errorf("at the end: %q", *events)
	}
}

func TestAFlipIsComparedWithTheLastDecision(t *testing.T) {
	name := types.NamespacedName{Namespace: "golden", Name: "box"}
	yes, no := metav1.Condition{Status: "True"}, metav1.Condition{Status: "False"}
	untried := metav1.Condition{Status: "Unknown", Reason: v1beta1.ReasonNotTried}
	for what, tc := range map[string]struct {
		conditions []metav1.Condition
		want       []metav1.ConditionStatus
	}{
		"ready again after a check":  {[]metav1.Condition{no, untried, untried, yes, no}, []metav1.ConditionStatus{"False", "False", "False", "True"}},
		"ready before and after":     {[]metav1.Condition{yes, untried, yes}, []metav1.ConditionStatus{"True", "True"}},
		"never checked before":       {[]metav1.Condition{untried, yes, no}, []metav1.ConditionStatus{"Unknown", "True"}},
		"without a check in between": {[]metav1.Condition{no, yes, no}, []metav1.ConditionStatus{"False", "True"}},
	} {
		t.Run(what, func(t *testing.T) {
			r := &Reconciler{decided: map[types.NamespacedName]metav1.Condition{}}
			var got []metav1.ConditionStatus
			for i := 1; i < len(tc.conditions); i++ {
				got = append(got, r.lastDecided(name, &tc.conditions[i-1], &tc.conditions[i]).Status)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("compared with %v, want %v", got, tc.want)
			}
		})
	}
}
