package audit

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policycache "github.com/vmstencil/stencil/cache/policies"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
)

// policyStatuses writes only status.audit of policies, by server-side apply.
type policyStatuses struct{ writer *statuswriter.Writer }

// write writes the result of an audit to each policy, unless the stored result is the same.
func (s policyStatuses) write(ctx context.Context, states []policycache.State, found counts, at time.Time) error {
	var failures []error
	for i := range states {
		state := &states[i]
		next := auditOf(state, found, at)
		if next == nil {
			continue
		}
		if err := s.writer.Apply(ctx, statuswriter.Policy(state.Object.Name), v1alpha1.FieldManagerPolicyAudit, map[string]any{"audit": next}); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// auditOf returns the new status of a policy; nil if the stored one differs at most in the time.
func auditOf(state *policycache.State, found counts, at time.Time) *v1alpha1.PolicyAudit {
	one := found.of(state.Object.Name)
	next := &v1alpha1.PolicyAudit{
		Generation: state.Object.Generation,
		Conforming: ptr.To(one.conforming),
		Violating:  ptr.To(one.violating),
		Unknown:    one.unknown,
		Excepted:   one.excepted,
		Violations: one.violations,
	}
	if state.Active != nil {
		next.Generation = state.Active.Generation
	}
	if stored := state.Object.Status.Audit; stored != nil {
		next.LastTime = stored.LastTime
		if stored.LastTime != nil && equality.Semantic.DeepEqual(stored, next) {
			return nil
		}
	}
	next.LastTime = ptr.To(metav1.NewTime(at))
	return next
}
