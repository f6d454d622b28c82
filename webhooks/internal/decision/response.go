package decision

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

// Response returns a denial with every objection, an admission with a warning for each, or an admission without
// warnings, depending on the enforcement.
func Response(request admission.Request, v approval.Decision) admission.Response {
	if v.Denied() {
		return Deny(request, v.Objections)
	}
	return admission.Allowed("").WithWarnings(Warnings(v)...)
}

// Warnings returns the objections of approvals that warn; none for any other enforcement.
func Warnings(v approval.Decision) []string {
	if v.Allowed || v.Enforcement != v1alpha1.EnforcementWarn {
		return nil
	}
	warnings := make([]string, len(v.Objections))
	for i, objection := range v.Objections {
		warnings[i] = "not approved: " + objection.String()
	}
	return warnings
}

// Deny denies a request. It lists the objections in the message, the only part of a Forbidden status that kubectl
// prints, and as causes for programs. Hints follow the objections in the message.
func Deny(request admission.Request, objections []approval.Objection, hints ...string) admission.Response {
	why, causes := unapproved(request, objections, hints...)
	resource := schema.GroupResource{Group: "kubevirt.io", Resource: "virtualmachines"}
	status := apierrors.NewForbidden(resource, request.Name, errors.New(why)).Status()
	status.Details.Causes = causes
	return deny.With(status)
}

// unapproved formats objections of approvals, and hints, as one message and as causes.
func unapproved(request admission.Request, objections []approval.Objection, hints ...string) (string, []metav1.StatusCause) {
	lines := make([]string, 0, len(objections)+len(hints))
	causes := make([]metav1.StatusCause, len(objections))
	for i, objection := range objections {
		lines = append(lines, objection.String())
		causes[i] = metav1.StatusCause{Type: metav1.CauseTypeForbidden, Field: objection.Field, Message: objection.Cause().ErrorBody()}
	}
	lines = append(lines, hints...)
	return fmt.Sprintf("it is not approved in namespace %q: %s", request.Namespace, strings.Join(lines, "; ")), causes
}
