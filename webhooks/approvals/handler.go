package approvals

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	policyschema "github.com/vmstencil/stencil/rego/schema"
	"github.com/vmstencil/stencil/webhooks/internal/changed"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

var approvalKind = schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "TemplateApproval"}

// Templates lists the templates in the cluster.
type Templates interface {
	Synced() bool
	List() []*templatecache.Template
}

// Namespaces returns the names of the namespaces that an approval selects.
type Namespaces interface {
	Synced() bool
	NamespacesOf(*approval.Approval) []string
}

// Options are the dependencies of a Handler.
type Options struct {
	Templates  Templates
	Namespaces Namespaces
	// Schemas returns the schemas of the objects of the cluster.
	Schemas func() *policyschema.Schemas
	// ExcludedNamespaces are the namespaces that no approval selects: those of Stencil.
	ExcludedNamespaces []string
}

// Handler serves the admission requests of the approval webhook.
type Handler struct{ Options }

// New returns a Handler.
func New(o Options) *Handler { return &Handler{Options: o} }

// Handle implements admission.Handler.
func (h *Handler) Handle(_ context.Context, request admission.Request) admission.Response {
	object, answer := changed.Object(request, "approval", sameSpec)
	if answer != nil {
		return *answer
	}
	compiled, err := approval.Compile(object, approval.Excluding(h.ExcludedNamespaces...))
	var invalid *approval.InvalidError
	switch {
	case errors.As(err, &invalid):
		return deny.With(apierrors.NewInvalid(approvalKind, object.Name, invalid.Causes).Status())
	case err != nil:
		return deny.With(apierrors.NewInternalError(fmt.Errorf("compiling the approval: %w", err)).Status())
	}
	return admission.Allowed("").WithWarnings(shorten(h.gather(object, compiled).warnings())...)
}

// gather collects the state that the warnings depend on.
func (h *Handler) gather(object *v1alpha1.TemplateApproval, compiled *approval.Approval) input {
	s := input{spec: &object.Spec, approval: compiled, excluded: h.ExcludedNamespaces, machine: h.Schemas().Of("VirtualMachine")}
	if h.Namespaces.Synced() {
		s.namespacesSynced, s.selected = true, h.Namespaces.NamespacesOf(compiled)
	}
	if h.Templates.Synced() {
		s.templatesSynced = true
		for _, t := range h.Templates.List() {
			s.templates = append(s.templates, candidateOf(t))
		}
	}
	return s
}

func sameSpec(before, after *v1alpha1.TemplateApproval) bool {
	return equality.Semantic.DeepEqual(before.Spec, after.Spec)
}
