package validate

import (
	"context"
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/exemption"
	"github.com/vmstencil/stencil/internal/objects"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/decision"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

// templateWaitTimeout is the timeout of a request that waits for a template to appear in the cache: the render webhook of
// another replica may have received the template earlier.
const templateWaitTimeout = 300 * time.Millisecond

// Templates returns compiled templates.
type Templates interface {
	Wait(ctx context.Context, namespace, name string, timeout time.Duration) *templatecache.Template
}

// Approvals returns the approvals that select a namespace.
type Approvals interface {
	Synced() bool
	ApprovalsFor(namespace string) []*approval.Approval
}

// Policies returns the decision of the policies about a request; a policyeval.Evaluator implements it.
type Policies interface {
	Evaluate(ctx context.Context, request admission.Request, object map[string]any) (policyset.Decision, error)
}

// Exemptions are the users exempt from approvals.
type Exemptions interface {
	Exempt(user string) bool
}

// Permissions checks what users may do with a template.
type Permissions interface {
	Allowed(ctx context.Context, user authenticationv1.UserInfo, verb permission.Verb, namespace, name string) (bool, error)
	May(ctx context.Context, user authenticationv1.UserInfo, action permission.Action) (bool, error)
}

// Options are the dependencies of a Handler.
type Options struct {
	Templates Templates
	// Permissions decides whether a user reads the rules of a template that a VirtualMachine violates.
	Permissions Permissions
	Approvals   Approvals
	// Policies may be nil; policies are not evaluated then.
	Policies Policies
	// Sizes resolves the instance types and preferences of VMs with rules.
	Sizes sizing.Resolver
	// Disks may be nil; disks that exist before their VirtualMachine are not evaluated then.
	Disks Disks
	// Objects reads the objects that are created with a new VirtualMachine.
	Objects *objects.Reader
	// Exempt are the users exempt from approvals: KubeVirt's and CDI's own controllers. Policies evaluate the VMs that
	// they create. Of the updates by exempt users, policies evaluate only those that KubeVirt's API server makes on
	// behalf of users. If nil, no user is exempt.
	Exempt Exemptions
	// Additions are the places at which the cluster adds to VMs. If nil, it adds nothing.
	Additions *approval.Additions
}

// Handler serves the admission requests of the validating webhook.
type Handler struct {
	templates   Templates
	permissions Permissions
	approvals   Approvals
	policies    Policies
	sizes       sizing.Resolver
	disks       Disks
	objects     *objects.Reader
	exempt      Exemptions
	additions   *approval.Additions
}

// New returns a Handler.
func New(o Options) *Handler {
	if o.Exempt == nil {
		o.Exempt = exemption.Users(nil)
	}
	return &Handler{templates: o.Templates, permissions: o.Permissions, approvals: o.Approvals, policies: o.Policies, sizes: o.Sizes, disks: o.Disks, objects: o.Objects, exempt: o.Exempt, additions: o.Additions}
}

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	decisions, denial := h.Evaluate(ctx, request)
	if denial != nil {
		return *denial
	}
	return decision.Combine(request, decisions)
}

// Evaluate returns the decisions of approvals, policies and the rules of the VM and its template about a request. It
// returns a denial if the request cannot be evaluated.
func (h *Handler) Evaluate(ctx context.Context, request admission.Request) (decision.Decisions, *admission.Response) {
	decisions := decision.Decisions{Approvals: approval.Decision{Allowed: true}}
	exempt := h.exempt.Exempt(request.UserInfo.Username)
	if request.Resource.Resource != "virtualmachines" || request.SubResource != "" ||
		request.Operation != admissionv1.Create && request.Operation != admissionv1.Update ||
		exempt && (request.Operation == admissionv1.Update && !strings.HasSuffix(request.UserInfo.Username, machine.VirtAPI) || h.policies == nil) {
		return decisions, nil
	}
	if !h.approvals.Synced() {
		return decisions, ptr.To(deny.Unavailable("the approval cache is not synced"))
	}
	vm, denial := deny.ReadVM(request.Name, request.Object.Raw)
	if denial != nil {
		return decisions, denial
	}
	if !exempt {
		if decisions.Approvals, denial = h.approve(ctx, request, vm); denial != nil {
			return decisions, denial
		}
	}
	if h.policies != nil {
		var err error
		if decisions.Policies, err = h.policies.Evaluate(ctx, request, vm.Object); err != nil {
			return decisions, ptr.To(deny.Unavailable(err.Error()))
		}
	}
	decisions.Rules, denial = h.rules(ctx, request, vm)
	return decisions, denial
}

// approve evaluates the approvals.
func (h *Handler) approve(ctx context.Context, request admission.Request, vm machine.Object) (approval.Decision, *admission.Response) {
	approvals := h.approvals.ApprovalsFor(request.Namespace)
	if request.Operation == admissionv1.Create {
		return h.create(ctx, request, vm, approvals)
	}
	if len(approvals) == 0 {
		return approval.Decision{Allowed: true}, nil
	}
	stored, denial := deny.ReadVM(request.Name, request.OldObject.Raw)
	if denial != nil {
		return approval.Decision{}, denial
	}
	return h.evaluateUpdate(ctx, request, vm, stored, approvals, h.templateOf(ctx, stored))
}

func (h *Handler) create(ctx context.Context, request admission.Request, vm machine.Object, approvals []*approval.Approval) (approval.Decision, *admission.Response) {
	text, templated := vm.Reference()
	if !templated {
		return evaluateUntemplated(request, approvals), nil
	}
	ref, errs := machine.ParseReference(text, request.Namespace)
	if len(errs) > 0 {
		return approval.Decision{}, ptr.To(deny.Invalid(request.Name, errs))
	}
	found := h.templates.Wait(ctx, ref.Namespace, ref.Name, templateWaitTimeout)
	if found == nil {
		return approval.Decision{}, ptr.To(deny.Unavailable(fmt.Sprintf("template %s, which this VM was just rendered from, no longer exists", ref)))
	}
	v, denial := h.evaluateCreate(ctx, request, vm, found, approvals)
	if denial != nil || h.disks == nil {
		return v, denial
	}
	return h.evaluateDisks(ctx, request, vm, approvals, v)
}

// templateOf returns the template of a stored VM for the approvals: the template that it was rendered from, with the
// digest at that time. If the same object still exists, the labels are the current ones.
func (h *Handler) templateOf(ctx context.Context, stored machine.Object) approval.Template {
	if _, templated := stored.Reference(); !templated {
		return approval.Template{}
	}
	record := stored.Record()
	origin := approval.Template{Namespace: record.Namespace, Name: record.Name, Digest: record.Digest, Deleted: true}
	if found := h.templates.Wait(ctx, record.Namespace, record.Name, 0); found != nil && found.UID == record.UID {
		origin.Labels, origin.Deleted = found.Labels(), false
	}
	return origin
}
