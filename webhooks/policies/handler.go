package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/policycache"
	"github.com/vmstencil/stencil/webhooks/refuse"
)

// Policies compiles a policy and runs its tests; a policycache.Cache does.
type Policies interface {
	Try(context.Context, *v1alpha1.VirtualMachinePolicy) (policycache.Trial, error)
}

// Options are what a Handler needs.
type Options struct {
	Policies Policies
}

// Handler answers the admission requests of the policy webhook.
type Handler struct{ Options }

// New returns a Handler.
func New(o Options) *Handler { return &Handler{Options: o} }

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.SubResource != "" || request.Operation != admissionv1.Create && request.Operation != admissionv1.Update {
		return admission.Allowed("")
	}
	var object v1alpha1.VirtualMachinePolicy
	if err := json.Unmarshal(request.Object.Raw, &object); err != nil {
		return refuse.With(apierrors.NewBadRequest(fmt.Sprintf("decoding the policy: %v", err)).Status())
	}
	if request.Operation == admissionv1.Update && sameSpec(&object, request.OldObject.Raw) {
		// Labels and finalizers of a policy must stay editable even when a newer Stencil
		// would not take it any more.
		return admission.Allowed("")
	}
	trial, err := h.Policies.Try(ctx, &object)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return refuse.With(apierrors.NewTimeoutError("the policy could not be compiled in time; try again", 1).Status())
	case err != nil:
		return refuse.With(apierrors.NewInternalError(fmt.Errorf("compiling the policy: %w", err)).Status())
	case len(trial.Problems) > 0:
		return refuse.With(invalid(object.Name, trial.Problems))
	}
	return admission.Allowed("").WithWarnings(warnings(trial)...)
}

func sameSpec(object *v1alpha1.VirtualMachinePolicy, oldRaw []byte) bool {
	var old v1alpha1.VirtualMachinePolicy
	return json.Unmarshal(oldRaw, &old) == nil && equality.Semantic.DeepEqual(object.Spec, old.Spec)
}
