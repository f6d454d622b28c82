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
	return s.writer.Condition(ctx, object, fieldManager, condition)
}
