package policies

import (
	"context"
	"errors"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policycache "github.com/vmstencil/stencil/cache/policies"
	"github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/webhooks/internal/changed"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

// Policies compiles a policy and runs its tests; a policycache.Cache implements it.
type Policies interface {
	Try(context.Context, *v1alpha1.VirtualMachinePolicy) (policycache.Trial, error)
}

// Permissions checks the permissions of users; an authorization.Checker implements it.
type Permissions interface {
	May(context.Context, authenticationv1.UserInfo, authorization.Action) (bool, error)
}

// Options are the dependencies of a Handler.
type Options struct {
	Policies Policies
	// Sampler tries policies on VirtualMachines.
	Sampler *Sampler
	// Permissions decides whether a user may read the names of VirtualMachines in warnings.
	Permissions Permissions
}

// Handler serves the admission requests of the policy webhook.
type Handler struct{ Options }

// New returns a Handler.
func New(o Options) *Handler { return &Handler{Options: o} }

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	object, answer := changed.Object(request, "policy", sameSpec)
	if answer != nil {
		return *answer
	}
	trial, err := h.Policies.Try(ctx, object)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return deny.With(apierrors.NewTimeoutError("the policy could not be compiled in time; try again", 1).Status())
	case err != nil:
		return deny.With(apierrors.NewInternalError(fmt.Errorf("compiling the policy: %w", err)).Status())
	case len(trial.Problems) > 0:
		return deny.With(invalid(object.Name, trial.Problems))
	}
	report, err := h.try(ctx, request.UserInfo, object, &trial)
	if err != nil {
		return deny.With(apierrors.NewInternalError(fmt.Errorf("trying the policy: %w", err)).Status())
	}
	if len(report.failures) > 0 && object.Annotations[v1alpha1.AnnotationStoreFailing] != "true" {
		return deny.With(failing(object.Name, report.field, report.failures))
	}
	return admission.Allowed("").WithWarnings(slices.Concat(report.failures, report.warnings, unreached(object, trial.Entry))...)
}

// report has what a trial found, as texts for users.
type report struct {
	// failures are reasons to reject the policy, all about one field.
	field    string
	failures []string
	warnings []string
}

// try evaluates the results of a trial, and tries a version that can be active on VirtualMachines. One that does not deny has no failures, only warnings.
// The error is that of ctx.
func (h *Handler) try(ctx context.Context, user authenticationv1.UserInfo, object *v1alpha1.VirtualMachinePolicy, trial *policycache.Trial) (report, error) {
	var found report
	enforcing := object.Spec.Enforcement == "" || object.Spec.Enforcement == v1alpha1.EnforcementDeny
	if len(trial.Failed) > 0 {
		if enforcing && trial.Active == nil {
			found.field, found.failures = fieldTests, failedTests(trial, "and no earlier version is active")
		} else {
			found.warnings = failedTests(trial, "so this version of the policy is stored but does not take effect")
		}
		return found, nil
	}
	if trial.Entry == nil {
		return found, nil
	}
	if missing := missingData(trial.Entry, enforcing, object.Spec.FailureMode); len(missing) > 0 {
		found.warnings = missing
		return found, nil
	}
	failed := func(trial *failedTrial, named bool) {
		if text := trial.text(named); enforcing {
			found.field, found.failures = fieldRego, []string{text}
		} else {
			found.warnings = []string{excerpt.Of(text, maximumWarning)}
		}
	}
	if failure := h.Sampler.synthetic(ctx, trial.Entry, &user); failure != nil {
		failed(failure, false)
		return found, ctx.Err()
	}
	tried, err := h.Sampler.stored(ctx, trial.Entry, trial.Active)
	if err != nil {
		found.warnings = []string{excerpt.Of("the policy was not tried on stored VirtualMachines: "+err.Error(), maximumWarning)}
		return found, ctx.Err()
	}
	switch {
	case tried.failed != nil:
		failed(tried.failed, h.mayList(ctx, user))
	case len(tried.found)+tried.unknown > 0:
		found.warnings = []string{tried.text(h.mayList(ctx, user))}
	}
	return found, ctx.Err()
}

// mayList reports whether a user may list the VirtualMachines of all namespaces, and so may read their names.
func (h *Handler) mayList(ctx context.Context, user authenticationv1.UserInfo) bool {
	allowed, err := h.Permissions.May(ctx, user, authorization.Action{Verb: authorization.List, Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"})
	return err == nil && allowed
}

func sameSpec(before, after *v1alpha1.VirtualMachinePolicy) bool {
	return equality.Semantic.DeepEqual(before.Spec, after.Spec)
}
