package render

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/delegation"
	"github.com/vmstencil/stencil/internal/exemption"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
	"github.com/vmstencil/stencil/webhooks/internal/rerender"
)

// TemplateWaitTimeout is the timeout of a request that waits for a template to appear in the cache: a template and its first VM
// are often created together.
const TemplateWaitTimeout = 300 * time.Millisecond

// Templates returns compiled templates.
type Templates interface {
	Synced() bool
	Wait(ctx context.Context, namespace, name string, timeout time.Duration) *templatecache.Template
	List() []*templatecache.Template
}

// Permissions checks what users may do with a template.
type Permissions interface {
	Allowed(ctx context.Context, user authenticationv1.UserInfo, verb permission.Verb, namespace, name string) (bool, error)
	May(ctx context.Context, user authenticationv1.UserInfo, action permission.Action) (bool, error)
}

// Options are the dependencies and the configuration of a Handler.
type Options struct {
	Templates   Templates
	Permissions Permissions
	Approvals   Approvals
	// Policies may be nil; denials by approvals have no denials by policies then.
	Policies Policies
	// Additions are the places at which the cluster adds to VMs. If nil, it adds nothing.
	Additions *approval.Additions
	// Exempt are the users exempt from approvals: KubeVirt's and CDI's own controllers. If nil, no user is.
	Exempt delegation.Exemptions
	// Server identifies the server that creates VMs on behalf of users. If empty, delegation is disabled.
	Server delegation.Server
	// AwaitState returns when the namespace has its state, or after a timeout: until then admission policies deny
	// requests that approvals may govern there. If nil, the Handler does not wait.
	AwaitState func(ctx context.Context, namespace string)
	// Lending reports that templates lend their disks: a VM whose disk is not lent is created with a warning.
	Lending bool
	// Objects are the dependencies for templates with other objects. If nil, VMs of such templates are denied.
	Objects *Objects
	// Suffix returns the random end of a generated name, five characters long. If nil, the generator of Kubernetes is
	// used.
	Suffix func() string
}

// Handler serves the admission requests of the render webhook.
type Handler struct {
	templates   Templates
	permissions Permissions
	approvals   Approvals
	policies    Policies
	additions   *approval.Additions
	exempt      delegation.Exemptions
	server      delegation.Server
	awaitState  func(ctx context.Context, namespace string)
	lending     bool
	objects     *Objects
	suffix      func() string
}

// New returns a Handler.
func New(o Options) *Handler {
	if o.Exempt == nil {
		o.Exempt = exemption.Users(nil)
	}
	h := &Handler{templates: o.Templates, permissions: o.Permissions, approvals: o.Approvals, policies: o.Policies, additions: o.Additions, exempt: o.Exempt, server: o.Server, awaitState: o.AwaitState, lending: o.Lending, objects: o.Objects, suffix: o.Suffix}
	if h.suffix == nil {
		h.suffix = func() string { return rand.String(machine.SuffixLength) }
	}
	return h
}

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	switch {
	case request.Resource.Resource != "virtualmachines" || request.SubResource != "":
		return admission.Allowed("")
	case request.Operation == admissionv1.Create:
		return h.create(ctx, request)
	case request.Operation == admissionv1.Update:
		return h.update(ctx, request)
	default:
		return admission.Allowed("")
	}
}

func (h *Handler) create(ctx context.Context, request admission.Request) admission.Response {
	vm, denial := deny.ReadVM(request.Name, request.Object.Raw)
	if denial != nil {
		return *denial
	}
	user, delegated, err := h.server.RequestingUser(request.UserInfo)
	if err != nil {
		return deny.With(apierrors.NewForbidden(vmResource, vm.Name(), err).Status())
	}
	if delegated {
		if denial := h.delegable(request, vm, user); denial != nil {
			return *denial
		}
	}
	exempt := h.exempt.Exempt(user.Username)
	if from, is := copied(vm, request.Namespace); is && exempt && !delegated {
		return h.copy(ctx, request, vm, from)
	}
	if !h.approvals.Synced() {
		return *unavailable("the approval cache is not synced", nil)
	}
	text, templated := vm.Reference()
	labelled := false
	switch {
	case !templated && exempt:
		return admission.Allowed("")
	case !templated && !delegated:
		if text, labelled = h.labelled(ctx, request, vm); !labelled {
			return h.untemplated(ctx, request)
		}
	case !templated:
		return h.untemplated(ctx, request)
	}
	ref, errs := machine.ParseReference(text, request.Namespace)
	if len(errs) > 0 {
		return deny.Invalid(vm.Name(), errs)
	}
	// The server has checked that the user may create VMs from this template. That the server may use templates itself
	// is a separate permission.
	found, denial := h.find(ctx, request.UserInfo, ref)
	if denial != nil {
		return *denial
	}
	approvals := h.approvals.ApprovalsFor(request.Namespace)
	if h.awaitState != nil && len(approvals) > 0 {
		h.awaitState(ctx, request.Namespace)
	}
	var enforced, considered []*approval.Approval
	if !exempt {
		considered = approvals
	}
	// All decisions about a preview are returned together, by the webhook that receives the complete VM.
	if preview := h.server.Previews(request.UserInfo) && ptr.Deref(request.DryRun, false); !preview {
		enforced = considered
	}
	decided := creation{
		object:    vm,
		namespace: request.Namespace,
		reference: ref,
		template:  found,
		user:      user,
		delegated: delegated,
		approvals: enforced, considered: considered,
		labelled: labelled,
		lending:  h.lending,
		suffix:   h.suffix,
	}.decide()
	if len(decided.objections) > 0 {
		return h.disapproved(ctx, request, user, approvals, decided)
	}
	if decided.templateChanged {
		return deny.With(apierrors.NewConflict(templateResource, ref.String(), errors.New("it changed while this VM was created from it; create the VM again")).Status())
	}
	if decided.outdated {
		return deny.With(apierrors.NewConflict(templateResource, ref.String(), errors.New("it changed after this VM was processed from it, and the VM does not match it any more; process it again")).Status())
	}
	if denial := h.attach(ctx, request, user, ref, &decided); denial != nil {
		return *denial
	}
	decided.warnings = slices.Concat(decided.warnings, warnOfReadiness(found), h.warnOfDisks(ctx, request.Namespace, decided.loans))
	return answer(vm.Name(), decided)
}

// warnOfReadiness returns a warning if a template is not ready because of its sources: its VirtualMachine may not start. The other reasons are about the
// template's own values, and what they mean for this VirtualMachine is decided now. Users who may use a template also read this in availabletemplates.
func warnOfReadiness(t *templatecache.Template) []string {
	for _, each := range t.Conditions() {
		if (each.Type == v1beta1.ConditionReady || each.Type == v1beta1.ConditionStencilReady) && each.Status == metav1.ConditionFalse && each.Reason == v1beta1.ReasonSourcesNotReady && each.ObservedGeneration == t.Generation {
			return []string{fmt.Sprintf("template %[1]s/%[2]s is not ready (%[3]s): %[4]s; kubectl describe virtualmachinetemplate %[2]s -n %[1]s shows the rest", t.Namespace, t.Name, each.Reason, each.Message)}
		}
	}
	return nil
}

// find returns a template from the cache. A user who may not get the template receives the same denial whether it
// does not exist or may not be used.
func (h *Handler) find(ctx context.Context, user authenticationv1.UserInfo, ref machine.Reference) (*templatecache.Template, *admission.Response) {
	mayUse, err := h.permissions.Allowed(ctx, user, permission.Use, ref.Namespace, ref.Name)
	if err != nil {
		return nil, unavailable("the permission check failed", err)
	}
	var found *templatecache.Template
	if mayUse {
		if found = h.templates.Wait(ctx, ref.Namespace, ref.Name, TemplateWaitTimeout); found != nil {
			return found, nil
		}
		if !h.templates.Synced() {
			return nil, unavailable("the template cache is not synced", nil)
		}
	} else {
		found = h.templates.Wait(ctx, ref.Namespace, ref.Name, 0)
	}
	maySee, err := h.permissions.Allowed(ctx, user, permission.Get, ref.Namespace, ref.Name)
	switch {
	case err != nil:
		return nil, unavailable("the permission check failed", err)
	case !maySee:
		return nil, denyUnseen(user.Username, ref, mayUse)
	case found == nil:
		return nil, denyMissing(ref)
	default:
		return nil, denyUse(user.Username, ref)
	}
}

func (h *Handler) update(ctx context.Context, request admission.Request) admission.Response {
	decoded, err := machine.Decode(request.Object.Raw)
	if err != nil {
		return deny.Malformed(err)
	}
	decodedOld, err := machine.Decode(request.OldObject.Raw)
	if err != nil {
		return deny.Malformed(fmt.Errorf("stored object: %w", err))
	}
	vm, errs := machine.Read(decoded)
	stored, storedErrs := machine.Read(decodedOld)
	if errs = append(errs, storedErrs...); len(errs) > 0 {
		return deny.Invalid(request.Name, errs)
	}
	_, refers := vm.Reference()
	if _, referred := stored.Reference(); !refers && !referred {
		return h.untemplatedUpdate(request, vm, stored)
	}
	decided := update{
		find:         func(from machine.Record) *template.Compiled { return h.originalOf(ctx, request.UserInfo, from) },
		raw:          request.Object.Raw,
		object:       vm,
		stored:       stored,
		user:         request.UserInfo,
		namespace:    request.Namespace,
		lending:      h.lending,
		fieldManager: managerOf(request.Options.Raw),
	}
	if decided.mutated = rerender.Changed(stored, vm); len(decided.mutated) > 0 {
		var denial *admission.Response
		if decided.original, denial = h.unchanged(ctx, request, stored.Record(), decided.mutated); denial != nil {
			return *denial
		}
	}
	return answer(request.Name, decided.decide())
}

// unchanged returns the template of a stored VM whose mutable parameters change. It denies users who may not use the template, and a template that has
// changed: what the VM was rendered from is not known then.
func (h *Handler) unchanged(ctx context.Context, request admission.Request, from machine.Record, parameters []string) (*template.Compiled, *admission.Response) {
	ref := machine.Reference{Namespace: from.Namespace, Name: from.Name}
	found, denial := h.find(ctx, request.UserInfo, ref)
	if denial != nil {
		return nil, denial
	}
	if compiled, err := found.Compiled(); err == nil && found.UID == from.UID && compiled.Digest() == from.Digest {
		return compiled, nil
	}
	var causes field.ErrorList
	for _, name := range parameters {
		causes = append(causes, field.Forbidden(machine.AnnotationsPath.Key(contract.AnnotationParameterPrefix+name), fmt.Sprintf(
			"template %s has changed since this VirtualMachine was rendered from it, so the fields that depend on the parameter are not known; edit spec itself, or create the VirtualMachine again", ref)))
	}
	return nil, ptr.To(deny.Invalid(request.Name, causes))
}

func answer(name string, o result) admission.Response {
	if len(o.causes) > 0 {
		return deny.Invalid(name, o.causes)
	}
	raw, err := o.patch.Marshal()
	if err != nil {
		return *unavailable("the answer could not be encoded", err)
	}
	response := admission.Allowed("").WithWarnings(o.warnings...)
	if raw != nil {
		patchType := admissionv1.PatchTypeJSONPatch
		response.Patch, response.PatchType = raw, &patchType
	}
	return response
}
