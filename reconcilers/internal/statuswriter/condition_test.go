package statuswriter_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
)

func TestTransition(t *testing.T) {
	earlier, now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	base := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Fine", Message: "it is", ObservedGeneration: 1}
	stored := base
	stored.LastTransitionTime = metav1.NewTime(earlier)
	for _, tc := range []struct {
		name        string
		stored      []metav1.Condition
		change      func(*metav1.Condition)
		wantTime    time.Time
		wantChanged bool
	}{
		{"none is stored", []metav1.Condition{{Type: "Other", Status: metav1.ConditionTrue}}, func(*metav1.Condition) {}, now, true},
		{"the same is stored", []metav1.Condition{stored}, func(*metav1.Condition) {}, earlier, false},
		{"another status", []metav1.Condition{stored}, func(c *metav1.Condition) { c.Status = metav1.ConditionFalse }, now, true},
		{"another reason", []metav1.Condition{stored}, func(c *metav1.Condition) { c.Reason = "Odd" }, earlier, true},
		{"another message", []metav1.Condition{stored}, func(c *metav1.Condition) { c.Message = "it was" }, earlier, true},
		{"another generation", []metav1.Condition{stored}, func(c *metav1.Condition) { c.ObservedGeneration = 2 }, earlier, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			condition := base
			tc.change(&condition)
			got, changed := statuswriter.Transition(tc.stored, condition, now)
			if !got.LastTransitionTime.Time.Equal(tc.wantTime) || changed != tc.wantChanged {
				t.Errorf("changed %t at %s", changed, got.LastTransitionTime)
			}
		})
	}
}
