package compliance

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
)

// fieldManager owns the condition PolicyCompliant of templates.
const fieldManager = "stencil-policy-compliance"

// statuses writes the results to statuses, and nothing else.
type statuses interface {
	// template writes the condition of a template, or removes it if condition is nil.
	template(ctx context.Context, t *templatecache.Template, condition *metav1.Condition) error
	// policy writes status.templates of a policy.
	policy(ctx context.Context, name string, templates *v1alpha1.PolicyTemplates) error
}

// apiServer writes statuses to the API server.
type apiServer struct{ writer *statuswriter.Writer }

func (s apiServer) template(ctx context.Context, t *templatecache.Template, condition *metav1.Condition) error {
	return s.writer.Condition(ctx, statuswriter.Template(t), fieldManager, condition)
}

func (s apiServer) policy(ctx context.Context, name string, templates *v1alpha1.PolicyTemplates) error {
	return s.writer.Apply(ctx, statuswriter.Policy(name), v1alpha1.FieldManagerPolicyTemplates, map[string]any{"templates": templates})
}
