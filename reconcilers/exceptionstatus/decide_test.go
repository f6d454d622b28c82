package exceptionstatus

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

func TestStatusOf(t *testing.T) {
	noon := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	object := &v1alpha1.PolicyException{
		ObjectMeta: metav1.ObjectMeta{Name: "legacy", Generation: 2},
		Spec:       v1alpha1.PolicyExceptionSpec{Policies: []string{"sizes", "owners"}, ExpiresAt: metav1.NewTime(noon)},
	}
	none := func(string) bool { return false }
	every := func(string) bool { return true }
	for _, tc := range []struct {
		name  string
		known func(string) bool
		now   time.Time
		want  []string
	}{
		{"before its end", every, noon.Add(-time.Second), []string{"Active=True Unexpired: it applies until 2026-11-28T12:00:00Z", "Ready=True PoliciesFound: every policy that it names exists"}},
		{"at its end", every, noon, []string{"Active=False Expired: it ended at 2026-11-28T12:00:00Z", "Ready=True PoliciesFound: every policy that it names exists"}},
		{"unknown policies", none, noon.Add(time.Hour), []string{"Active=False Expired: it ended at 2026-11-28T12:00:00Z", "Ready=False UnknownPolicies: these VirtualMachinePolicies do not exist: sizes, owners"}},
		{"one unknown policy", func(name string) bool { return name == "sizes" }, noon, []string{"Active=False Expired: it ended at 2026-11-28T12:00:00Z", "Ready=False UnknownPolicies: these VirtualMachinePolicies do not exist: owners"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, changed := statusOf(object, tc.known, tc.now)
			if !changed || status.ObservedGeneration != 2 || len(status.Conditions) != 2 {
				t.Fatalf("changed: %t, %+v", changed, status)
			}
			for i, c := range status.Conditions {
				if got := c.Type + "=" + string(c.Status) + " " + c.Reason + ": " + c.Message; got != tc.want[i] || c.ObservedGeneration != 2 || !c.LastTransitionTime.Time.Equal(tc.now) {
					t.Errorf("got  %s\nwant %s", got, tc.want[i])
				}
			}
			stored := object.DeepCopy()
			stored.Status = *status
			if _, changed := statusOf(stored, tc.known, tc.now); changed {
				t.Error("the same status is written again")
			}
		})
	}
}
