package proofs

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
)

// fieldManager owns the condition PolicyCompliantForAllValues.
const fieldManager = "stencil-policy-proofs"

// statuses writes conditions to statuses, and nothing else.
type statuses interface {
	// write writes the condition of an object, or removes it if condition is nil.
	write(ctx context.Context, object statuswriter.Object, condition *metav1.Condition) error
}

// apiServer writes statuses to the API server.
type apiServer struct{ writer *statuswriter.Writer }

func (s apiServer) write(ctx context.Context, object statuswriter.Object, condition *metav1.Condition) error {
	// Without the empty list, the API server would store null for conditions that have no other writer, and reject it.
	conditions := []metav1.Condition{}
	if condition != nil {
		conditions = append(conditions, *condition)
	}
	return s.writer.Apply(ctx, object, fieldManager, map[string]any{"conditions": conditions})
}
