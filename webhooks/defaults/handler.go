package defaults

import (
	"context"
	"fmt"
	"reflect"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/internal/exemption"
	"github.com/vmstencil/stencil/internal/guestdefaults"
	"github.com/vmstencil/stencil/internal/mutation"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

// Approvals returns the approvals that select a namespace; an approvalcache.Cache implements it.
type Approvals interface {
	ApprovalsFor(namespace string) []*approval.Approval
}

// Exemptions are the users exempt from approvals.
type Exemptions interface {
	Exempt(user string) bool
}

// Options are the dependencies and the configuration of a Handler.
type Options struct {
	guestdefaults.Filler
	Approvals Approvals
	// FailClosed denies VMs while the defaulter is unavailable. If false, they are allowed with a warning.
	FailClosed bool
	// Exempt are the users exempt from approvals. If nil, no user is.
	Exempt Exemptions
	// Metrics may be nil.
	Metrics *Metrics
}

// Handler serves the admission requests of the defaults webhook.
type Handler struct {
	Options
}

// New returns a Handler.
func New(o Options) *Handler {
	if o.Exempt == nil {
		o.Exempt = exemption.Users(nil)
	}
	return &Handler{Options: o}
}

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Resource.Resource != "virtualmachines" || request.SubResource != "" {
		return admission.Allowed("")
	}
	var stored machine.Object
	switch request.Operation {
	case admissionv1.Create:
	case admissionv1.Update:
		var denial *admission.Response
		if stored, denial = deny.ReadVM(request.Name, request.OldObject.Raw); denial != nil {
			return *denial
		}
	default:
		return admission.Allowed("")
	}
	vm, denial := deny.ReadVM(request.Name, request.Object.Raw)
	if denial != nil {
		return *denial
	}
	if vm.Metadata["deletionTimestamp"] != nil {
		return admission.Allowed("")
	}
	return h.fill(ctx, &filling{request: request, vm: vm, stored: stored, patch: &mutation.Patch{}})
}

// filling is the state of one request while the defaults of its VM are filled in.
type filling struct {
	request admission.Request
	vm      machine.Object
	// stored is the zero Machine on creation.
	stored machine.Object
	patch  *mutation.Patch
}

func (f *filling) creates() bool { return f.request.Operation == admissionv1.Create }

// runs reports whether the guest may be running, from the status that KubeVirt reports.
func (f *filling) runs() bool {
	status, _ := f.stored.Object["status"].(map[string]any)
	created, _ := status["created"].(bool)
	return created
}

// reopens reports whether the stored VM opts out of defaults. An update that ends the opt-out fills them in, whatever
// else it changes.
func (f *filling) reopens() bool {
	return machine.StringAt(f.stored.Annotations, contract.AnnotationDefaultsSkip) == "true"
}

// before returns the stored value of an annotation. The value in the request is not trusted.
func (f *filling) before(annotation string) string {
	return machine.StringAt(f.stored.Annotations, annotation)
}

func (h *Handler) fill(ctx context.Context, f *filling) admission.Response {
	if machine.StringAt(f.vm.Annotations, contract.AnnotationDefaultsSkip) == "true" {
		h.Metrics.count(f.request, resultSkipped)
		guestdefaults.Stamp(f.vm, f.patch, f.before(contract.AnnotationDefaultsApplied), "")
		return f.answer()
	}
	sent := f.vm.Spec
	if !f.creates() {
		if h.governed(f.request) {
			// The user's version is compared with the result below.
			sent = runtime.DeepCopyJSON(f.vm.Spec)
		}
		restoreStored(f.stored.Object, f.vm.Object, f.patch)
		if reflect.DeepEqual(f.vm.Spec, f.stored.Spec) && !f.reopens() {
			guestdefaults.Stamp(f.vm, f.patch, f.before(contract.AnnotationDefaultsApplied), f.before(contract.AnnotationDefaultsFailed))
			return f.answer()
		}
	}
	if machine.MapAt(f.vm.Spec, "template") == nil {
		// KubeVirt rejects it with a better message.
		return f.answer()
	}
	response, _, err := h.Request(ctx, &guestdefaults.Subject{
		Namespace: f.request.Namespace, VM: f.vm, Stored: f.stored, Running: f.runs(),
		// The whole VM is compared afterwards.
		Whole: !f.creates() && h.governed(f.request),
	})
	if err != nil {
		return h.fail(ctx, f, err)
	}
	return h.apply(ctx, f, sent, response)
}

func (h *Handler) governed(request admission.Request) bool {
	return !h.Exempt.Exempt(request.UserInfo.Username) && len(h.Approvals.ApprovalsFor(request.Namespace)) > 0
}

// apply turns the response of the defaulter into the response of the webhook.
func (h *Handler) apply(ctx context.Context, f *filling, sent map[string]any, response *defaulting.Response) admission.Response {
	log := logr.FromContextOrDiscard(ctx)
	for _, skipped := range response.Skipped {
		log.V(1).Info("a default is left open", "namespace", f.request.Namespace, "name", f.vm.Name(), "path", skipped.Path, "reason", skipped.Reason)
	}
	if !f.creates() && len(response.Set) > 0 && h.governed(f.request) {
		within, err := h.within(f, sent, response)
		if err != nil {
			return h.fail(ctx, f, err)
		}
		if !within {
			h.Metrics.count(f.request, resultWithheld)
			guestdefaults.Stamp(f.vm, f.patch, f.before(contract.AnnotationDefaultsApplied), f.before(contract.AnnotationDefaultsFailed))
			return f.answer()
		}
	}
	warning, err := guestdefaults.Write(f.patch, f.vm, f.stored, response)
	if err != nil {
		return h.fail(ctx, f, err)
	}
	result := resultUnchanged
	if len(response.Set) > 0 {
		result = resultFilled
	}
	h.Metrics.count(f.request, result)
	answer := f.answer()
	if answer.Allowed && warning != "" {
		answer = answer.WithWarnings(warning)
	}
	return answer
}

// within reports whether the result differs from the stored VM only at paths where the user's version differs too.
// See the package comment.
func (h *Handler) within(f *filling, sent map[string]any, response *defaulting.Response) (bool, error) {
	result, err := machine.Decode(response.VM)
	if err != nil {
		return false, fmt.Errorf("reading the defaults: %w", err)
	}
	changed := map[string]bool{}
	stored := map[string]any{"spec": f.stored.Object["spec"]}
	for _, path := range approval.Changes(stored, map[string]any{"spec": sent}) {
		changed[path.String()] = true
	}
	for _, path := range approval.Changes(stored, map[string]any{"spec": result["spec"]}) {
		if !changed[path.String()] {
			return false, nil
		}
	}
	return true, nil
}

// fail returns the response for a VM without defaults: the rejection of the defaulter if there is one, and otherwise
// the response that the failure policy requires.
func (h *Handler) fail(ctx context.Context, f *filling, err error) admission.Response {
	if causes := guestdefaults.Rejection(err); causes != nil {
		h.Metrics.count(f.request, resultRejected)
		return deny.Invalid(f.vm.Name(), causes)
	}
	why := guestdefaults.Reason(err)
	h.Metrics.count(f.request, resultUnavailable)
	logr.FromContextOrDiscard(ctx).Info("defaults could not be filled in",
		"namespace", f.request.Namespace, "name", f.vm.Name(), "failClosed", h.FailClosed, "cause", err.Error())
	if h.FailClosed {
		return deny.Unavailable(fmt.Sprintf("the defaults that the guest sees cannot be filled in: %s; with annotation %s: \"true\" they are left open", why, contract.AnnotationDefaultsSkip))
	}
	guestdefaults.Stamp(f.vm, f.patch, f.before(contract.AnnotationDefaultsApplied), why)
	response := f.answer()
	if response.Allowed {
		response = response.WithWarnings("the defaults that the guest sees were not filled in: " + why + "; the VM gets them when it is started, as without Stencil")
	}
	return response
}

// answer allows the VM with the collected patch.
func (f *filling) answer() admission.Response {
	response := admission.Allowed("")
	raw, err := f.patch.Marshal()
	switch {
	case err != nil:
		return deny.Unavailable("the answer could not be encoded")
	case raw == nil:
		return response
	}
	patchType := admissionv1.PatchTypeJSONPatch
	response.Patch, response.PatchType = raw, &patchType
	return response
}
