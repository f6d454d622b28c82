package readiness

import (
	"context"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/reconcilers/statuswriter"
)

// fieldManager owns what this package writes into the status of templates.
const fieldManager = "stencil-template-readiness"

// statuses writes the status of templates. It writes nothing else.
type statuses interface {
	write(ctx context.Context, t *templatecache.Template, status *v1beta1.VirtualMachineTemplateStatus) error
}

// apiServer has the API server store them.
type apiServer struct{ writer *statuswriter.Writer }

func (s apiServer) write(ctx context.Context, t *templatecache.Template, status *v1beta1.VirtualMachineTemplateStatus) error {
	return s.writer.Apply(ctx, statuswriter.Template(t), fieldManager, status)
}
