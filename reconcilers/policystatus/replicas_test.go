package policystatus

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
)

func TestWhatAReplicaSays(t *testing.T) {
	o := observed()
	if got := entryOf(&o.State, "pod"); got != nil {
		t.Errorf("of a policy that it has never evaluated: %+v", got)
	}
	o.Statistics = policyset.Statistics{Count: 5, Timeouts: 2, Errors: 1, P50Microseconds: 30, P99Microseconds: 90}
	o.Quarantine = &policyset.Quarantine{}
	want := &v1alpha1.PolicyReplica{
		Name: "pod", ActiveDigest: "d3", Quarantined: true,
		PolicyEvaluations: v1alpha1.PolicyEvaluations{Count: 5, Timeouts: 2, Errors: 1, P50Microseconds: 30, P99Microseconds: 90},
	}
	if diff := cmp.Diff(want, entryOf(&o.State, "pod")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	nothingActive(&o)
	if got := entryOf(&o.State, "pod"); got != nil {
		t.Errorf("of a policy that is not in force: %+v", got)
	}
}

func TestWhenAReplicaWrites(t *testing.T) {
	entry := func(count int64, changes ...func(*v1alpha1.PolicyReplica)) *v1alpha1.PolicyReplica {
		r := &v1alpha1.PolicyReplica{ActiveDigest: "d", PolicyEvaluations: v1alpha1.PolicyEvaluations{Count: count, P50Microseconds: 100, P99Microseconds: 200}}
		for _, apply := range changes {
			apply(r)
		}
		return r
	}
	for name, tc := range map[string]struct {
		stored, next *v1alpha1.PolicyReplica
		age          time.Duration
		want         bool
	}{
		"never, when there is nothing to say":            {},
		"at once, when it has said nothing yet":          {next: entry(1), want: true},
		"at once, to take back what it has said":         {stored: entry(1), want: true},
		"not before the interval is over":                {stored: entry(1), next: entry(1000), age: 59 * time.Second},
		"when it has counted more":                       {stored: entry(1), next: entry(2), age: time.Minute, want: true},
		"not for a little more":                          {stored: entry(1000), next: entry(1050), age: time.Minute},
		"for a tenth more":                               {stored: entry(1000), next: entry(1100), age: time.Minute, want: true},
		"when it has become slower":                      {stored: entry(1000), next: entry(1000, func(r *v1alpha1.PolicyReplica) { r.P99Microseconds = 300 }), age: time.Minute, want: true},
		"not for a little slower":                        {stored: entry(1000), next: entry(1000, func(r *v1alpha1.PolicyReplica) { r.P99Microseconds = 210 }), age: time.Minute},
		"for one timeout":                                {stored: entry(1000), next: entry(1000, func(r *v1alpha1.PolicyReplica) { r.Timeouts = 1 }), age: time.Minute, want: true},
		"soon, when a quarantine begins":                 {stored: entry(1), next: entry(1, quarantined), age: 2 * time.Second, want: true},
		"but not all the time, when it comes and goes":   {stored: entry(1), next: entry(1, quarantined), age: time.Second},
		"again and again, while a quarantine goes on":    {stored: entry(1, quarantined), next: entry(1, quarantined), age: time.Minute, want: true},
		"soon, when another version is in force":         {stored: entry(9), next: entry(1, func(r *v1alpha1.PolicyReplica) { r.ActiveDigest = "e" }), age: 2 * time.Second, want: true},
		"now and then, to be heard of":                   {stored: entry(1), next: entry(1), age: heartbeat, want: true},
		"not over an entry that comes from the future":   {stored: entry(1), next: entry(1000), age: -time.Minute},
		"not, when it says the same a few minutes later": {stored: entry(7), next: entry(7), age: 5 * time.Minute},
	} {
		if tc.stored != nil {
			tc.stored.LastUpdateTime = metav1.NewTime(noon.Add(-tc.age))
		}
		if got := due(tc.stored, tc.next, noon, time.Minute); got != tc.want {
			t.Errorf("%s: writes %v, want %v", name, got, tc.want)
		}
	}
}

func TestTheFieldManagerOfAReplicaFits(t *testing.T) {
	if got := replicaManager("stencil-manager-0"); got != "stencil-policy-replica-stencil-manager-0" {
		t.Error(got)
	}
	name := string(make([]byte, 200))
	a, b := replicaManager(name+"a"), replicaManager(name+"b")
	if len(a) != 128 || a == b {
		t.Errorf("%d characters, the same for two replicas: %v", len(a), a == b)
	}
}
