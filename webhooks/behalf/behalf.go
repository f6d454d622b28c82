// Package behalf shows a validating webhook a request as that of the person for whom
// stencil-apiserver makes it: approvals and policies judge people, and the server has
// no opinions of its own.
package behalf

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/internal/delegation"
	"github.com/vmstencil/stencil/webhooks/internal/refuse"
)

// Handler puts the person into the place of the server, and hands the request on.
type Handler struct {
	server delegation.Server
	next   admission.Handler
}

// New returns a Handler in front of another one.
func New(server delegation.Server, next admission.Handler) *Handler {
	return &Handler{server: server, next: next}
}

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	person, _, err := h.server.Person(request.UserInfo)
	if err != nil {
		resource := schema.GroupResource{Group: request.Resource.Group, Resource: request.Resource.Resource}
		status := apierrors.NewForbidden(resource, request.Name, err).Status()
		return refuse.With(status)
	}
	request.UserInfo = person
	return h.next.Handle(ctx, request)
}
