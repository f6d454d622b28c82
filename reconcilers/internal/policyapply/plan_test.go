package policyapply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecide(t *testing.T) {
	a := Manifest{Name: "a", Digest: "1"}
	on := []Manifest{a}
	for name, tc := range map[string]struct {
		manifests []Manifest
		found     []found
		want      Plan
	}{
		"what is missing is applied": {
			manifests: on, want: Plan{Apply: on},
		},
		"what was applied and has not changed since is left alone": {
			manifests: on, found: []found{{name: "a", ours: true, generation: 3, applied: 3, digest: "1"}},
		},
		"what another process has applied is applied once more": {
			manifests: on, found: []found{{name: "a", ours: true, generation: 3, digest: "1"}}, want: Plan{Apply: on},
		},
		"what a user has changed is applied": {
			manifests: on, found: []found{{name: "a", ours: true, generation: 4, applied: 3, digest: "1"}}, want: Plan{Apply: on},
		},
		"what has another manifest now is applied": {
			manifests: on, found: []found{{name: "a", ours: true, generation: 3, applied: 3, digest: "0"}}, want: Plan{Apply: on},
		},
		"another owner's policy of that name stays": {
			manifests: on, found: []found{{name: "a", generation: 1}}, want: Plan{Foreign: []string{"a"}},
		},
		"what has no manifest any more goes, and only what is ours": {
			found: []found{{name: "b", ours: true, generation: 1}, {name: "a", ours: true, generation: 1}, {name: "c", generation: 1}},
			want:  Plan{Remove: []string{"a", "b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(tc.manifests, tc.found)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
