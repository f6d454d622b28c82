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

// patience is the timeout of a request that waits for a template to appear in the cache: the render webhook of
// another replica may have received the template earlier.
const patience = 300 * time.Millisecond

// Templates returns compiled templates.
type Templates interface {
	Wait(ctx context.Context, namespace, name string, patience time.Duration) *templatecache.Template
}

// Approvals returns the approvals that select a namespace.
type Approvals interface {
	Synced() bool
	Covering(namespace string) []*approval.Approval
}

// Policies returns the decision of the policies about a request; a policing.Judge implements it.
type Policies interface {
	Judge(ctx context.Context, request admission.Request, object map[string]any) (policyset.Decision, error)
}

// Exemptions are the users exempt from approvals.
type Exemptions interface {
	Exempt(user string) bool
}

// Options are the dependencies of a Handler.
type Options struct {
	Templates Templates
	Approvals Approvals
	// Policies may be nil; policies are not evaluated then.
	Policies Policies
	// Sizes resolves the instance types and preferences of VMs with rules.
	Sizes sizing.Resolver
	// Disks may be nil; disks that exist before their VirtualMachine are not evaluated then.
	Disks Disks
	// Exempt are the users exempt from approvals: KubeVirt's and CDI's own controllers. Policies evaluate the VMs that
	// they create. Of the updates by exempt users, policies evaluate only those that KubeVirt's API server makes on
	// behalf of users. If nil, no user is exempt.
	Exempt Exemptions
}

// Handler serves the admission requests of the validating webhook.
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

// Judge returns the decisions of approvals, policies and the rules of the VM and its template about a request. It
// returns a denial if the request cannot be evaluated.
func (h *Handler) Judge(ctx context.Context, request admission.Request) (verdict.Judgement, *admission.Response) {
	judged := verdict.Judgement{Approvals: approval.Verdict{Allowed: true}}
	exempt := h.exempt.Exempt(request.UserInfo.Username)
	if request.Resource.Resource != "virtualmachines" || request.SubResource != "" ||
		request.Operation != admissionv1.Create && request.Operation != admissionv1.Update ||
		exempt && (request.Operation == admissionv1.Update && !strings.HasSuffix(request.UserInfo.Username, machine.VirtAPI) || h.policies == nil) {
		return judged, nil
	}
	if !h.approvals.Synced() {
		return judged, ptr.To(refuse.Unavailable("the approval cache is not synced"))
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

// approve evaluates the approvals.
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
		return approval.Verdict{}, ptr.To(refuse.Unavailable(fmt.Sprintf("template %s, which this VM was just rendered from, no longer exists", ref)))
	}
	v, refusal := h.judgeCreate(ctx, request, vm, found, covering)
	if refusal != nil || h.disks == nil {
		return v, refusal
	}
	return h.evaluateDisks(ctx, request, vm, covering, v)
}

// templateOf returns the template of a stored VM for the approvals: the template that it was rendered from, with the
// digest at that time. If the same object still exists, the labels are the current ones.
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
