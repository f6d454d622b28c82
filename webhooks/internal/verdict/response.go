package verdict

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
	"github.com/vmstencil/stencil/webhooks/internal/refuse"
)

// Response is a refusal with every objection, consent with a warning for each, or
// plain consent, as the enforcement says.
func Response(request admission.Request, v approval.Verdict) admission.Response {
	if v.Refused() {
		return Refuse(request, v.Objections)
	}
	return admission.Allowed("").WithWarnings(Warnings(v)...)
}

// Warnings are the objections of approvals that warn; none otherwise.
func Warnings(v approval.Verdict) []string {
	if v.Allowed || v.Enforcement != v1alpha1.EnforcementWarn {
		return nil
	}
	warnings := make([]string, len(v.Objections))
	for i, objection := range v.Objections {
		warnings[i] = "not approved: " + objection.String()
	}
	return warnings
}

// Refuse lists the objections in the message, which is all that kubectl shows of a
// Forbidden, and as causes, which is what programs read. Hints follow them.
func Refuse(request admission.Request, objections []approval.Objection, hints ...string) admission.Response {
	why, causes := unapproved(request, objections, hints...)
	resource := schema.GroupResource{Group: "kubevirt.io", Resource: "virtualmachines"}
	status := apierrors.NewForbidden(resource, request.Name, errors.New(why)).Status()
	status.Details.Causes = causes
	return refuse.With(status)
}

// unapproved puts objections of approvals, and hints, into one sentence and into causes.
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
