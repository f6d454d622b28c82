package readiness

import (
	"context"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
)

// fieldManager owns the fields of templates' statuses that this package writes.
const fieldManager = "stencil-template-readiness"

// statuses writes the status of templates, and nothing else.
type statuses interface {
	write(ctx context.Context, t *templatecache.Template, status *v1beta1.VirtualMachineTemplateStatus) error
}

// apiServer writes statuses to the API server.
type apiServer struct{ writer *statuswriter.Writer }

func (s apiServer) write(ctx context.Context, t *templatecache.Template, status *v1beta1.VirtualMachineTemplateStatus) error {
	return s.writer.Apply(ctx, statuswriter.Template(t), fieldManager, status)
}
