package policylibrary

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecide(t *testing.T) {
	on := []enabled{{name: "a", digest: "1"}}
	for name, tc := range map[string]struct {
		enabled []enabled
		found   []found
		want    plan
	}{
		"what is missing is applied": {
			enabled: on, want: plan{apply: []string{"a"}},
		},
		"what was applied and has not changed since is left alone": {
			enabled: on, found: []found{{name: "a", ours: true, generation: 3, applied: 3, digest: "1"}},
		},
		"what another process has applied is applied once more": {
			enabled: on, found: []found{{name: "a", ours: true, generation: 3, digest: "1"}}, want: plan{apply: []string{"a"}},
		},
		"what somebody has changed is applied": {
			enabled: on, found: []found{{name: "a", ours: true, generation: 4, applied: 3, digest: "1"}}, want: plan{apply: []string{"a"}},
		},
		"what the values have changed is applied": {
			enabled: on, found: []found{{name: "a", ours: true, generation: 3, applied: 3, digest: "0"}}, want: plan{apply: []string{"a"}},
		},
		"somebody else's policy of that name stays": {
			enabled: on, found: []found{{name: "a", generation: 1}}, want: plan{foreign: []string{"a"}},
		},
		"what is switched off goes, and only what is ours": {
			found: []found{{name: "b", ours: true, generation: 1}, {name: "a", ours: true, generation: 1}, {name: "c", generation: 1}},
			want:  plan{remove: []string{"a", "b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(tc.enabled, tc.found), cmp.AllowUnexported(plan{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
