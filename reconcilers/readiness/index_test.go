package readiness

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
)

func TestTheIndexFollowsWhatTemplatesReferTo(t *testing.T) {
	claim, other := in(sources.Claim, "disk"), in(sources.Claim, "other")
	preference := sources.Key{Kind: sources.ClusterPreference, Name: "fedora"}
	x := newIndex()
	for _, step := range []struct {
		name     string
		template string
		seen     []sources.Key
		wantMore bool
		want     map[sources.Key][]string
	}{
		{"a template comes", "a", []sources.Key{claim, preference}, true, map[sources.Key][]string{claim: {"a"}, preference: {"a"}, other: nil, {Kind: sources.Claim}: {"a"}}},
		{"it is read again", "a", []sources.Key{preference, claim}, false, map[sources.Key][]string{claim: {"a"}, preference: {"a"}}},
		{"two others share an object", "b", []sources.Key{preference}, true, map[sources.Key][]string{preference: {"a", "b"}}},
		{"with it", "c", []sources.Key{other, preference}, true, map[sources.Key][]string{preference: {"a", "b", "c"}, {Kind: sources.Claim}: {"a", "c"}}},
		{"the first refers to another object", "a", []sources.Key{other, preference}, true, map[sources.Key][]string{claim: nil, other: {"a", "c"}, preference: {"a", "b", "c"}}},
		{"one refers to less", "a", []sources.Key{preference}, false, map[sources.Key][]string{other: {"c"}, preference: {"a", "b", "c"}}},
		{"one goes", "b", nil, false, map[sources.Key][]string{preference: {"a", "c"}}},
		{"one goes that is not there", "b", nil, false, map[sources.Key][]string{preference: {"a", "c"}}},
		{"the others go", "a", nil, false, map[sources.Key][]string{preference: {"c"}}},
		{"all of them", "c", nil, false, map[sources.Key][]string{preference: nil, other: nil, {Kind: sources.Claim}: nil}},
	} {
		if got := x.set(types.NamespacedName{Name: step.template}, step.seen); got != step.wantMore {
			t.Errorf("%s: more: %t, want %t", step.name, got, step.wantMore)
		}
		for key, want := range step.want {
			var got []string
			for _, name := range x.of(key) {
				got = append(got, name.Name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: the templates that depend on %s (-want +got):\n%s", step.name, key, diff)
			}
		}
	}
	if len(x.dependents) > 0 || len(x.referenced) > 0 {
		t.Errorf("it still holds %v and %v", x.dependents, x.referenced)
	}
}
