package instances

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

// concurrency is the number of claims that are read at a time.
const concurrency = 8

// Approvals returns the approvals that select a namespace.
type Approvals interface {
	Synced() bool
	ApprovalsFor(namespace string) []*approval.Approval
}

// Disks reads from the API server; a disks.APIServer implements it. The result is nil for an object that does not
// exist.
type Disks interface {
	Claim(ctx context.Context, namespace, name string) (*metav1.ObjectMeta, error)
	VirtualMachine(ctx context.Context, namespace, name string) (map[string]any, error)
}

// Options are the dependencies of a Handler.
type Options struct {
	Approvals Approvals
	Disks     Disks
}

// Handler serves the admission requests of the webhook.
type Handler struct{ Options }

// New returns a Handler.
func New(o Options) *Handler { return &Handler{Options: o} }

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Resource.Resource != "virtualmachineinstances" || request.SubResource != "" || request.Operation != admissionv1.Create {
		return admission.Allowed("")
	}
	if !h.Approvals.Synced() {
		return deny.Unavailable("the approval cache is not synced")
	}
	approvals := h.Approvals.ApprovalsFor(request.Namespace)
	if !approval.Denies(approvals) || !approval.DecidesOnDisks(approvals) {
		return admission.Allowed("")
	}
	var vmi instance
	if err := json.Unmarshal(request.Object.Raw, &vmi); err != nil {
		return deny.Malformed(fmt.Errorf("decoding the VirtualMachineInstance: %w", err))
	}
	owner := metav1.GetControllerOf(&vmi.Metadata)
	if owner == nil || owner.Kind != "VirtualMachine" {
		return admission.Allowed("") // admission policy entry-points evaluates these
	}
	vm, err := h.Disks.VirtualMachine(ctx, request.Namespace, owner.Name)
	if err != nil {
		return deny.Unavailable(err.Error())
	}
	disks, problem := mounted(vmi, owner, vm)
	if problem != "" {
		return forbidden(request, problem)
	}
	claims, err := h.findClaims(ctx, request.Namespace, disks)
	if err != nil {
		return deny.Unavailable(err.Error())
	}
	if problem := foreign(owner, claims, approvals); problem != "" {
		return forbidden(request, problem)
	}
	return admission.Allowed("")
}

// findClaims reads the claims of the disks and sets their found fields.
func (h *Handler) findClaims(ctx context.Context, namespace string, disks []disk) ([]disk, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i := range disks {
		group.Go(func() (err error) {
			disks[i].found, err = h.Disks.Claim(ctx, namespace, disks[i].claim)
			return err
		})
	}
	return disks, group.Wait()
}

func forbidden(request admission.Request, why string) admission.Response {
	resource := schema.GroupResource{Group: request.Resource.Group, Resource: request.Resource.Resource}
	return deny.With(apierrors.NewForbidden(resource, request.Name, errors.New(why)).Status())
}
