package validate

import (
	"context"
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/exemption"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/refuse"
	"github.com/vmstencil/stencil/webhooks/internal/verdict"
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

// Policies says what the policies have against a request; a policing.Judge does.
type Policies interface {
	Judge(ctx context.Context, request admission.Request, object map[string]any) (policyset.Decision, error)
}

// Exemptions are the users exempt from approvals.
type Exemptions interface {
	Exempt(user string) bool
}

// Options are what a Handler needs.
type Options struct {
	Templates Templates
	Approvals Approvals
	// Policies may be nil; nobody asks them then.
	Policies Policies
	// Sizes finds the instance types and preferences of machines that rules are about.
	Sizes sizing.Resolver
	// Disks may be nil; it is not evaluated then whether disks exist before their VirtualMachine.
	Disks Disks
	// Exempt are the users exempt from approvals: KubeVirt's and CDI's own controllers. Policies evaluate what they
	// create, and of what they change only what KubeVirt's API server does for users. If nil, no user is exempt.
	Exempt Exemptions
}

// Handler answers the admission requests of the validating webhook.
type Handler struct {
	templates Templates
	approvals Approvals
	policies  Policies
	sizes     sizing.Resolver
	disks     Disks
	exempt    Exemptions
}

// New returns a Handler.
func New(o Options) *Handler {
	if o.Exempt == nil {
		o.Exempt = exemption.Users(nil)
	}
	return &Handler{templates: o.Templates, approvals: o.Approvals, policies: o.Policies, sizes: o.Sizes, disks: o.Disks, exempt: o.Exempt}
}

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	judged, refusal := h.Judge(ctx, request)
	if refusal != nil {
		return *refusal
	}
	return verdict.Joint(request, judged)
}

// Judge says what approvals, policies and the rules that came with the machine have to
// say about a request. A refusal is for what nobody can judge.
func (h *Handler) Judge(ctx context.Context, request admission.Request) (verdict.Judgement, *admission.Response) {
	judged := verdict.Judgement{Approvals: approval.Verdict{Allowed: true}}
	exempt := h.exempt.Exempt(request.UserInfo.Username)
	if request.Resource.Resource != "virtualmachines" || request.SubResource != "" ||
		request.Operation != admissionv1.Create && request.Operation != admissionv1.Update ||
		exempt && (request.Operation == admissionv1.Update && !strings.HasSuffix(request.UserInfo.Username, machine.VirtAPI) || h.policies == nil) {
		return judged, nil
	}
	if !h.approvals.Synced() {
		return judged, ptr.To(refuse.Unavailable("the approvals have not been read yet"))
	}
	vm, refusal := refuse.Machine(request.Name, request.Object.Raw)
	if refusal != nil {
		return judged, refusal
	}
	if !exempt {
		if judged.Approvals, refusal = h.approve(ctx, request, vm); refusal != nil {
			return judged, refusal
		}
	}
	if h.policies != nil {
		var err error
		if judged.Policies, err = h.policies.Judge(ctx, request, vm.Object); err != nil {
			return judged, ptr.To(refuse.Unavailable(err.Error()))
		}
	}
	judged.Rules, refusal = h.rules(ctx, request, vm)
	return judged, refusal
}

// approve asks the approvals.
func (h *Handler) approve(ctx context.Context, request admission.Request, vm machine.Machine) (approval.Verdict, *admission.Response) {
	covering := h.approvals.Covering(request.Namespace)
	if request.Operation == admissionv1.Create {
		return h.create(ctx, request, vm, covering)
	}
	if len(covering) == 0 {
		return approval.Verdict{Allowed: true}, nil
	}
	stored, refusal := refuse.Machine(request.Name, request.OldObject.Raw)
	if refusal != nil {
		return approval.Verdict{}, refusal
	}
	return h.judgeUpdate(ctx, request, vm, stored, covering, h.templateOf(ctx, stored))
}

func (h *Handler) create(ctx context.Context, request admission.Request, vm machine.Machine, covering []*approval.Approval) (approval.Verdict, *admission.Response) {
	written, templated := vm.Reference()
	if !templated {
		return judgeUntemplated(request, covering), nil
	}
	ref, errs := machine.ParseReference(written, request.Namespace)
	if len(errs) > 0 {
		return approval.Verdict{}, ptr.To(refuse.Invalid(request.Name, errs))
	}
	found := h.templates.Wait(ctx, ref.Namespace, ref.Name, patience)
	if found == nil {
		return approval.Verdict{}, ptr.To(refuse.Unavailable(fmt.Sprintf("template %s, which this VM was just rendered from, is gone", ref)))
	}
	v, refusal := h.judgeCreate(ctx, request, vm, found, covering)
	if refusal != nil || h.disks == nil {
		return v, refusal
	}
	return h.evaluateDisks(ctx, request, vm, covering, v)
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
