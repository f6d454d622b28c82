package coverage

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
)

func object(name string, generation int64, change func(*v1alpha1.TemplateApprovalSpec)) v1alpha1.TemplateApproval {
	o := v1alpha1.TemplateApproval{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: generation}}
	o.Spec.Templates = []v1alpha1.ApprovedTemplate{{Namespace: "golden", Name: "fedora"}}
	change(&o.Spec)
	return o
}

func everywhere(s *v1alpha1.TemplateApprovalSpec) { s.NamespaceSelector = &v1alpha1.LabelSelector{} }

func TestGoverned(t *testing.T) {
	w := &Watch{excluded: []string{"stencil-system"}, compiled: map[types.UID]*approval.Approval{}}
	snapshot := Snapshot{
		Approvals: w.compile([]v1alpha1.TemplateApproval{
			object("labels", 1, func(s *v1alpha1.TemplateApprovalSpec) {
				s.NamespaceSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"tenant": "yes"}}
			}),
			object("broken", 1, func(s *v1alpha1.TemplateApprovalSpec) {
				s.Namespaces, s.Overrides = []string{"team-a"}, []string{"no override"}
			}),
			object("all", 1, everywhere),
		}),
		Namespaces: []Namespace{{Name: "kube-system"}, {Name: "stencil-system"}, {Name: "team-a", Labels: map[string]string{"tenant": "yes"}}, {Name: "team-b"}},
	}
	got := map[string][]string{}
	for namespace, approvals := range snapshot.Governed() {
		for _, a := range approvals {
			got[namespace] = append(got[namespace], a.Name())
		}
	}
	want := map[string][]string{"team-a": {"all", "broken", "labels"}, "team-b": {"all"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("approvals by namespace (-want +got):\n%s", diff)
	}
}

// Cached results equal those of a new computation, whatever changes in between.
func TestSelectionsAreRemembered(t *testing.T) {
	w := &Watch{compiled: map[types.UID]*approval.Approval{}}
	labels := []map[string]string{nil, {"tenant": "a"}, {"tenant": "b"}, {"tenant": "a", "env": "prod"}}
	random := rand.New(rand.NewPCG(7, 7))
	covered, computed := 0, map[string]int64{}
	for range 2_000 {
		var objects []v1alpha1.TemplateApproval
		for _, name := range []string{"a", "b", "c"} {
			if random.IntN(10) == 0 {
				computed[name]++
			}
			if random.IntN(20) == 0 {
				continue
			}
			generation := computed[name]
			objects = append(objects, object(name, generation+1, func(s *v1alpha1.TemplateApprovalSpec) {
				switch value := []string{"a", "b"}[generation%2]; name {
				case "a":
					s.NamespaceSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"tenant": value}}
				case "b":
					s.Namespaces = []string{"team-" + value}
				default:
					s.NamespaceSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
				}
			}))
		}
		snapshot := Snapshot{Approvals: w.compile(objects), cached: &w.selections}
		for _, name := range []string{"team-a", "team-b", "team-c"} {
			if random.IntN(10) > 0 {
				snapshot.Namespaces = append(snapshot.Namespaces, Namespace{Name: name, Labels: labels[random.IntN(len(labels))]})
			}
		}
		anew := snapshot
		anew.cached = nil
		got, want := snapshot.Governed(), anew.Governed()
		if !maps.EqualFunc(got, want, slices.Equal[[]*approval.Approval]) {
			t.Fatalf("remembered %v, found %v", got, want)
		}
		covered += len(got)
	}
	if covered < 1_000 {
		t.Errorf("%d namespaces covered say little", covered)
	}
}

func TestAnApprovalIsCompiledOncePerGeneration(t *testing.T) {
	w := &Watch{compiled: map[types.UID]*approval.Approval{}}
	compile := func(objects ...v1alpha1.TemplateApproval) *approval.Approval { return w.compile(objects)[0].Approval }
	first := compile(object("a", 1, everywhere))
	if again := compile(object("a", 1, everywhere)); again != first {
		t.Error("the same generation was compiled again")
	}
	if next := compile(object("a", 2, everywhere)); next == first {
		t.Error("another generation was not compiled")
	}
	recreated := object("a", 2, everywhere)
	recreated.UID = "another"
	if other := compile(recreated); other.UID() != "another" {
		t.Error("another object of the same name was taken for the old one")
	}
	if len(w.compiled) != 1 {
		t.Errorf("%d approvals are remembered, of which one exists", len(w.compiled))
	}
}

func TestSpecChanged(t *testing.T) {
	before := object("a", 1, everywhere)
	status, spec, other := object("a", 1, everywhere), object("a", 2, everywhere), object("a", 1, everywhere)
	status.Status.ObservedGeneration = 1
	other.UID = "another"
	for _, tc := range []struct {
		name  string
		after v1alpha1.TemplateApproval
		want  bool
	}{
		{"a status is no change", status, false},
		{"another spec is", spec, true},
		{"another object of the same name is", other, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := specChanged(event.UpdateEvent{ObjectOld: &before, ObjectNew: &tc.after}); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
