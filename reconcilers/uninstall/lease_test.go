package uninstall

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestHowLongAHolderMayStillAct(t *testing.T) {
	now := time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: now.Add(-d)} }
	for name, tc := range map[string]struct {
		spec coordinationv1.LeaseSpec
		want time.Duration
	}{
		"no holder":                         {coordinationv1.LeaseSpec{HolderIdentity: ptr.To(""), RenewTime: ago(time.Second)}, 0},
		"a leader":                          {coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a"), RenewTime: ago(time.Second), LeaseDurationSeconds: ptr.To[int32](30)}, 30 * time.Second},
		"a leader with a longer Lease":      {coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a"), RenewTime: ago(time.Second), LeaseDurationSeconds: ptr.To[int32](60)}, time.Minute},
		"a leader whose clock is behind":    {coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a"), RenewTime: ago(5 * time.Minute), LeaseDurationSeconds: ptr.To[int32](30)}, 30 * time.Second},
		"a leader that is dead":             {coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a"), RenewTime: ago(time.Hour), LeaseDurationSeconds: ptr.To[int32](30)}, 0},
		"an earlier run, just begun":        {coordinationv1.LeaseSpec{HolderIdentity: ptr.To(Identity), AcquireTime: ago(10 * time.Second), RenewTime: ago(time.Second)}, 20 * time.Second},
		"an earlier run":                    {coordinationv1.LeaseSpec{HolderIdentity: ptr.To(Identity), AcquireTime: ago(time.Minute), RenewTime: ago(time.Second)}, 0},
		"an earlier run, of a clock before": {coordinationv1.LeaseSpec{HolderIdentity: ptr.To(Identity), AcquireTime: ago(-time.Hour)}, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := remaining(&coordinationv1.Lease{Spec: tc.spec}, now); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
