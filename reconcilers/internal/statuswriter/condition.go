package statuswriter

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Transition sets the time of a condition's last transition: that of the stored condition of this type while the status stays
// the same, otherwise now. It also reports whether the condition differs from the stored one.
func Transition(stored []metav1.Condition, condition metav1.Condition, now time.Time) (next metav1.Condition, changed bool) {
	condition.LastTransitionTime = metav1.NewTime(now)
	before := meta.FindStatusCondition(stored, condition.Type)
	if before == nil {
		return condition, true
	}
	if before.Status == condition.Status {
		condition.LastTransitionTime = before.LastTransitionTime
	}
	changed = before.Status != condition.Status || before.Reason != condition.Reason || before.Message != condition.Message ||
		before.ObservedGeneration != condition.ObservedGeneration
	return condition, changed
}

// Change returns what to write of the condition of a type, nil to remove it. changed is false if it is stored like this. condition has no time of its last
// transition; it may be nil.
func Change(stored []metav1.Condition, of string, condition *metav1.Condition, now time.Time) (next *metav1.Condition, changed bool) {
	if condition == nil {
		return nil, meta.FindStatusCondition(stored, of) != nil
	}
	written, changed := Transition(stored, *condition, now)
	return &written, changed
}
