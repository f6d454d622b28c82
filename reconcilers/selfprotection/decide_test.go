package selfprotection

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

func TestDecide(t *testing.T) {
	render := identity{"MutatingWebhookConfiguration", "a-stencil-render"}
	policy := identity{"ValidatingAdmissionPolicy", "stencil-template-use"}
	binding := identity{"ValidatingAdmissionPolicyBinding", "stencil-undecided-namespaces"}
	other := identity{"ValidatingAdmissionPolicyBinding", "stencil-namespace-coverage"}
	type want struct {
		Create, Replace, Report []string
		Again                   time.Duration
	}
	for _, tc := range []struct {
		name  string
		state state
		want  want
	}{
		{
			name:  "without a release nothing is restored and nothing is waited for",
			state: state{objects: []observed{{identity: render, missingSince: ago(time.Hour)}}},
		},
		{
			name: "what is as it should be is left alone until the next tick",
			state: state{active: true, objects: []observed{
				{identity: render, present: true, same: true, restored: ago(0)},
				{identity: policy, present: true, same: true},
			}},
			want: want{Again: tick},
		},
		{
			name: "what was changed is replaced at once",
			state: state{active: true, objects: []observed{
				{identity: render, present: true},
				{identity: policy, present: true, same: true},
			}},
			want: want{Replace: []string{render.String()}, Again: tick},
		},
		{
			name:  "what has just gone missing may belong to an uninstallation and is waited for",
			state: state{active: true, objects: []observed{{identity: render, missingSince: ago(time.Second / 2)}}},
			want:  want{Again: missingGracePeriod - time.Second/2},
		},
		{
			name: "what stays missing is created again, whatever else has to wait",
			state: state{active: true, objects: []observed{
				{identity: render, missingSince: ago(missingGracePeriod)},
				{identity: policy, missingSince: ago(missingGracePeriod / 2)},
			}},
			want: want{Create: []string{render.String()}, Again: missingGracePeriod / 2},
		},
		{
			name: "an upgrade is given time to arrive",
			state: state{active: true, quietUntil: noon.Add(3 * time.Second), objects: []observed{
				{identity: render, present: true},
				{identity: policy, missingSince: ago(time.Minute)},
			}},
			want: want{Again: 3 * time.Second},
		},
		{
			name:  "after the time is over its leftovers are restored",
			state: state{active: true, quietUntil: noon, objects: []observed{{identity: render, present: true}}},
			want:  want{Replace: []string{render.String()}, Again: tick},
		},
		{
			name: "whoever changes an object again and again is answered once a second",
			state: state{active: true, objects: []observed{
				{identity: render, present: true, restored: ago(spacing / 4)},
				{identity: policy, missingSince: ago(missingGracePeriod), restored: ago(spacing / 2)},
			}},
			want: want{Again: spacing / 2},
		},
		{
			name: "what requires a ConfigMap that does not exist is not created, and looked at again soon",
			state: state{active: true, objects: []observed{
				{identity: binding, byManager: true, held: true, missingSince: ago(time.Hour)},
				{identity: policy, present: true, same: true},
			}},
			want: want{Again: requirementTick},
		},
		{
			name: "it holds up nothing else",
			state: state{active: true, objects: []observed{
				{identity: binding, byManager: true, held: true, missingSince: ago(time.Hour)},
				{identity: policy, missingSince: ago(missingGracePeriod)},
				{identity: render, missingSince: ago(missingGracePeriod - requirementTick/2)},
			}},
			want: want{Create: []string{policy.String()}, Again: requirementTick / 2},
		},
		{
			name: "it is created as soon as the ConfigMap exists, also while a release is new",
			state: state{active: true, quietUntil: noon.Add(quiet), objects: []observed{
				{identity: binding, byManager: true, missingSince: ago(0)},
			}},
			want: want{Create: []string{binding.String()}, Again: tick},
		},
		{
			name: "and not more often than once a second",
			state: state{active: true, objects: []observed{
				{identity: binding, byManager: true, missingSince: ago(0), restored: ago(spacing / 4)},
			}},
			want: want{Again: spacing * 3 / 4},
		},
		{
			name: "one that was changed is replaced, whether or not the ConfigMap exists",
			state: state{active: true, objects: []observed{
				{identity: binding, present: true, byManager: true, held: true},
				{identity: other, present: true, byManager: true},
			}},
			want: want{Replace: []string{binding.String(), other.String()}, Again: tick},
		},
		{
			name: "an upgrade is given time to change it",
			state: state{active: true, quietUntil: noon.Add(3 * time.Second), objects: []observed{
				{identity: binding, present: true, byManager: true},
			}},
			want: want{Again: 3 * time.Second},
		},
		{
			name: "webhooks are added as soon as their authority is published, also while a release is new",
			state: state{active: true, quietUntil: noon.Add(quiet), objects: []observed{
				{identity: render, present: true, incomplete: true},
			}},
			want: want{Replace: []string{render.String()}, Again: tick},
		},
		{
			name: "without it they are not",
			state: state{active: true, objects: []observed{
				{identity: render, present: true, incomplete: true, held: true},
			}},
			want: want{Again: requirementTick},
		},
		{
			name: "one that is as it should be stays when the ConfigMap goes",
			state: state{active: true, objects: []observed{
				{identity: binding, present: true, same: true, byManager: true, held: true},
			}},
			want: want{Again: tick},
		},
		{
			name: "what is not restored is reported, in the same time",
			state: state{active: true, objects: []observed{
				{identity: policy, present: true, reportOnly: true},
				{identity: other, missingSince: ago(missingGracePeriod), reportOnly: true},
				{identity: binding, missingSince: ago(missingGracePeriod / 2), reportOnly: true},
			}},
			want: want{Report: []string{policy.String(), other.String()}, Again: missingGracePeriod / 2},
		},
		{
			name: "and once",
			state: state{active: true, objects: []observed{
				{identity: policy, present: true, reportOnly: true, reported: true},
				{identity: other, missingSince: ago(time.Hour), reportOnly: true, reported: true},
			}},
			want: want{Again: tick},
		},
		{
			name: "what the manager has to create it creates, and reports when somebody changes it",
			state: state{active: true, objects: []observed{
				{identity: binding, byManager: true, missingSince: ago(0), reportOnly: true},
				{identity: other, byManager: true, present: true, reportOnly: true},
			}},
			want: want{Create: []string{binding.String()}, Report: []string{other.String()}, Again: tick},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.state.now = noon
			planned := decide(tc.state)
			got := want{Create: written(planned.create), Replace: written(planned.replace), Report: written(planned.report), Again: planned.again}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func written(identities []identity) []string {
	var texts []string
	for _, who := range identities {
		texts = append(texts, who.String())
	}
	return texts
}

func TestQuietAfter(t *testing.T) {
	for _, tc := range []struct {
		name    string
		written time.Time
		want    time.Time
	}{
		{"it counts from when the ConfigMap was written", ago(4 * time.Second), noon.Add(quiet - 4*time.Second)},
		{"a ConfigMap that was written long ago asks for no quiet", ago(time.Hour), ago(time.Hour - quiet)},
		{"a clock that is ahead of ours does not prolong it", noon.Add(time.Hour), noon.Add(quiet)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := quietAfter(tc.written, noon); !got.Equal(tc.want) {
				t.Errorf("want %s, got %s", tc.want, got)
			}
		})
	}
}
