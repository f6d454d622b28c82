package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/policycache"
)

var policyResource = v1alpha1.GroupVersion.WithResource("virtualmachinepolicies")

// policyStatuses writes status.audit of policies by server-side apply, and nothing else of them.
type policyStatuses struct{ client dynamic.Interface }

// write writes what an audit found about each policy, where it is another than what is stored.
func (s policyStatuses) write(ctx context.Context, states []policycache.State, found counts, at time.Time) error {
	var failures []error
	for i := range states {
		state := &states[i]
		next := auditOf(state, found, at)
		if next == nil {
			continue
		}
		if err := s.apply(ctx, state.Object.Name, next); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// auditOf returns the status that tells what was found; nil when the stored one does, but for the time.
func auditOf(state *policycache.State, found counts, at time.Time) *v1alpha1.PolicyAudit {
	one := found.of(state.Object.Name)
	next := &v1alpha1.PolicyAudit{
		Generation: state.Object.Generation,
		Conforming: ptr.To(one.conforming),
		Violating:  ptr.To(one.violating),
		Violations: one.violations,
	}
	if state.InForce != nil {
		next.Generation = state.InForce.Generation
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

func (s policyStatuses) apply(ctx context.Context, name string, audit *v1alpha1.PolicyAudit) error {
	raw, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "VirtualMachinePolicy",
		"metadata": map[string]any{"name": name},
		"status":   map[string]any{"audit": audit},
	})
	if err != nil {
		return fmt.Errorf("encoding the status of VirtualMachinePolicy %s: %w", name, err)
	}
	patch := &unstructured.Unstructured{}
	if err := patch.UnmarshalJSON(raw); err != nil {
		return fmt.Errorf("encoding the status of VirtualMachinePolicy %s: %w", name, err)
	}
	_, err = s.client.Resource(policyResource).ApplyStatus(ctx, name, patch, metav1.ApplyOptions{FieldManager: v1alpha1.FieldManagerPolicyAudit, Force: true})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status of VirtualMachinePolicy %s: %w", name, err)
	}
	return nil
}
