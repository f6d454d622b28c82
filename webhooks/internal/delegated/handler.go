// Package delegated replaces the user of requests that stencil-apiserver makes on behalf of a user: a validating webhook
// receives them as requests of that user. Approvals and policies then evaluate the user and not the server.
package delegated

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/internal/delegation"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

// Handler replaces the server's user info by that of the delegated user, and calls the next handler.
type Handler struct {
	server delegation.Server
	next   admission.Handler
}

// New returns a Handler that calls next.
func New(server delegation.Server, next admission.Handler) *Handler {
	return &Handler{server: server, next: next}
}

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	user, _, err := h.server.RequestingUser(request.UserInfo)
	if err != nil {
		resource := schema.GroupResource{Group: request.Resource.Group, Resource: request.Resource.Resource}
		status := apierrors.NewForbidden(resource, request.Name, err).Status()
		return deny.With(status)
	}
	request.UserInfo = user
	return h.next.Handle(ctx, request)
}
