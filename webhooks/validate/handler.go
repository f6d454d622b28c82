package validate

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/machine"
	"github.com/vmstencil/stencil/templatecache"
)

// patience is how long a request waits for a template that the cache does not
// know: the render webhook of another replica may have been a moment ahead.
const patience = 300 * time.Millisecond

// Templates is where compiled templates come from.
type Templates interface {
	Wait(ctx context.Context, namespace, name string, patience time.Duration) *templatecache.Template
}

// Approvals knows which approvals cover a namespace.
type Approvals interface {
	Synced() bool
	Covering(namespace string) []*approval.Approval
}

// Options are what a Handler needs.
type Options struct {
	Templates Templates
	Approvals Approvals
	// ExemptUsers are the full names of users who are never judged: the service
	// accounts of KubeVirt's and CDI's own controllers.
	ExemptUsers []string
}

// Handler answers the admission requests of the validating webhook.
type Handler struct {
	templates Templates
	approvals Approvals
	exempt    map[string]bool
}

// New returns a Handler.
func New(o Options) *Handler {
	h := &Handler{templates: o.Templates, approvals: o.Approvals, exempt: map[string]bool{}}
	for _, user := range o.ExemptUsers {
		h.exempt[user] = true
	}
	return h
}

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Resource.Resource != "virtualmachines" || request.SubResource != "" ||
		request.Operation != admissionv1.Create && request.Operation != admissionv1.Update ||
		h.exempt[request.UserInfo.Username] {
		return admission.Allowed("")
	}
	if !h.approvals.Synced() {
		return refuseUnavailable("the approvals have not been read yet")
	}
	vm, refusal := take(request.Name, request.Object.Raw)
	if refusal != nil {
		return *refusal
	}
	covering := h.approvals.Covering(request.Namespace)
	if request.Operation == admissionv1.Create {
		return h.create(ctx, request, vm, covering)
	}
	if len(covering) == 0 {
		return admission.Allowed("")
	}
	stored, refusal := take(request.Name, request.OldObject.Raw)
	if refusal != nil {
		return *refusal
	}
	return judgeUpdate(request, vm, stored, covering, h.templateOf(ctx, stored))
}

func take(name string, raw []byte) (machine.Machine, *admission.Response) {
	decoded, err := machine.Decode(raw)
	if err != nil {
		response := refuseMalformed(err)
		return machine.Machine{}, &response
	}
	vm, errs := machine.Read(decoded)
	if len(errs) > 0 {
		response := refuseInvalid(name, errs)
		return machine.Machine{}, &response
	}
	return vm, nil
}

func (h *Handler) create(ctx context.Context, request admission.Request, vm machine.Machine, covering []*approval.Approval) admission.Response {
	written, templated := vm.Reference()
	if !templated {
		return judgeUntemplated(request, covering)
	}
	ref, errs := machine.ParseReference(written, request.Namespace)
	if len(errs) > 0 {
		return refuseInvalid(request.Name, errs)
	}
	found := h.templates.Wait(ctx, ref.Namespace, ref.Name, patience)
	if found == nil {
		return refuseUnavailable(fmt.Sprintf("template %s, which this VM was just rendered from, is gone", ref))
	}
	return judgeCreate(request, vm, found, covering)
}

// templateOf is what approvals are asked about a stored VM: the template that it
// was rendered from, in the version of then. Its labels are those of now, if it
// still is the same object.
func (h *Handler) templateOf(ctx context.Context, stored machine.Machine) approval.Template {
	if _, templated := stored.Reference(); !templated {
		return approval.Template{}
	}
	record := stored.Record()
	asked := approval.Template{Namespace: record.Namespace, Name: record.Name, Digest: record.Digest, Gone: true}
	if found := h.templates.Wait(ctx, record.Namespace, record.Name, 0); found != nil && found.UID == record.UID {
		asked.Labels, asked.Gone = found.Labels, false
	}
	return asked
}
