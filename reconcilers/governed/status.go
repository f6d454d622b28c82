package governed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
)

// owner is the field manager of the condition Active.
const owner = "stencil-governed"

// pendingOf returns the number of changes that each approval waits for. An active approval does not wait for a namespace with an unchanged
// label: another approval causes that change.
func pendingOf(changes []change, activeBefore map[string]bool) map[string]int {
	pending := map[string]int{}
	for _, c := range changes {
		for _, a := range c.approvals {
			if c.before != c.state.Governed || !activeBefore[a.Name()] {
				pending[a.Name()]++
			}
		}
	}
	return pending
}

// activeOf returns the names of the approvals that have a true condition Active for their present generation.
func activeOf(approvals []coverage.Approval) map[string]bool {
	names := map[string]bool{}
	for _, a := range approvals {
		stored := meta.FindStatusCondition(a.Object.Status.Conditions, v1alpha1.ConditionActive)
		if stored != nil && stored.Status == metav1.ConditionTrue && stored.ObservedGeneration == a.Generation() {
			names[a.Name()] = true
		}
	}
	return names
}

// report writes the condition Active of the approvals where it differs from the stored one, and of those in since, which have been written
// after they were read. It returns the names of the approvals that it wrote.
func (r *Reconciler) report(ctx context.Context, approvals []coverage.Approval, decided plan, pending map[string]int, since map[string]bool) (map[string]bool, error) {
	var failures []error
	written := map[string]bool{}
	for _, a := range approvals {
		condition := active(a.Generation(), pending[a.Name()], decided.omitted[a.Name()])
		next, changed := statuswriter.Transition(a.Object.Status.Conditions, condition, time.Now())
		if !changed && !since[a.Name()] {
			continue
		}
		written[a.Name()] = true
		failures = append(failures, r.options.Statuses.Apply(ctx, statuswriter.Approval(a.Object), owner, map[string]any{"conditions": []metav1.Condition{next}}))
	}
	return written, errors.Join(failures...)
}

// active returns the condition of an approval. pending is the number of namespaces that have to be written, and full a namespace with no
// room for the approval in its annotation.
func active(generation int64, pending int, full string) metav1.Condition {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionActive, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonActive, ObservedGeneration: generation,
		Message: "every namespace that it selects carries it",
	}
	switch {
	case full != "":
		condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonTooLarge
		condition.Message = fmt.Sprintf("namespace %s has no room for it beside the older approvals that select the namespace (64 KiB, 512 subjects and 512 exempt subjects): "+
			"admission policies approve nothing by it there; shorten the lists of templates, subjects and exemptSubjects", full)
	case pending > 0:
		condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonWriting
		condition.Message = fmt.Sprintf("%d namespaces do not carry it yet; what was enforced in them before is enforced until then", pending)
	}
	return condition
}
