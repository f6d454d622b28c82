package apiserver

import (
	"context"
	"errors"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	"github.com/vmstencil/stencil/internal/delegation"
	"github.com/vmstencil/stencil/internal/preview"
)

// Preview implements Creator, by two dry runs. In the first one, the manager's webhook for previews returns all decisions of approvals, policies and
// rules. The second one is made when none of them denies: it is a complete dry run, in which other webhooks and the API server may deny the
// VirtualMachine.
func (d *Delegate) Preview(ctx context.Context, user authenticationv1.UserInfo, namespace string, vm []byte) ([]v1beta1.Decision, error) {
	headers, err := delegation.Headers(d.server, user)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	all := []string{metav1.DryRunAll}
	marked := headers.Clone()
	delegation.MarkPreview(marked)
	_, ours, err := d.post(ctx, marked, namespace, vm, all)
	if err == nil {
		return nil, apierrors.NewInternalError(errors.New("no webhook answered the preview: the webhook preview.template.kubevirt.io is not installed, or is not configured for this server"))
	}
	decisions, previewed := preview.Decisions(err)
	if !previewed {
		// Another component denies it before the preview webhook.
		decisions, err := denialDecisions(err)
		return withWarnings(decisions, ours), err
	}
	if preview.Denied(decisions) {
		return withWarnings(decisions, ours), nil
	}
	_, theirs, err := d.post(ctx, headers, namespace, vm, all)
	if err != nil {
		denials, err := denialDecisions(err)
		if err != nil {
			return nil, err
		}
		decisions = append(decisions, denials...)
	}
	return withWarnings(decisions, slices.Concat(ours, theirs)), nil
}

// withWarnings adds a decision for each warning of the API server and of webhooks, and sorts all. A warning of a policy or a rule contains the message of its
// decision, and is left out.
func withWarnings(decisions []v1beta1.Decision, warnings []string) []v1beta1.Decision {
	for _, text := range warnings {
		known := func(d v1beta1.Decision) bool {
			_, message, named := strings.Cut(d.Message, ": ")
			return d.Decision == v1beta1.EffectWarn && (d.Message == text || d.Policy != "" && (strings.Contains(text, d.Message) || named && strings.Contains(text, message)))
		}
		if !slices.ContainsFunc(decisions, known) {
			decisions = append(decisions, v1beta1.Decision{Decision: v1beta1.EffectWarn, Message: text})
		}
	}
	preview.Sort(decisions)
	return decisions
}

// denialDecisions converts the denial of another component to decisions: the error that the API server returned. Errors that are not about the
// VirtualMachine, for example that a component cannot be reached, stay errors, and so does a conflict because the template changed meanwhile.
func denialDecisions(err error) ([]v1beta1.Decision, error) {
	var answered apierrors.APIStatus
	about := apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
	if !about || templateChanged(err) || !errors.As(err, &answered) {
		return nil, err
	}
	var causes []metav1.StatusCause
	if details := answered.Status().Details; details != nil {
		causes = details.Causes
	}
	if len(causes) < 2 {
		decision := v1beta1.Decision{Decision: v1beta1.EffectDeny, Message: answered.Status().Message}
		if len(causes) == 1 {
			decision.Field = causes[0].Field
		}
		return []v1beta1.Decision{decision}, nil
	}
	decisions := make([]v1beta1.Decision, len(causes))
	for i, cause := range causes {
		decisions[i] = v1beta1.Decision{Decision: v1beta1.EffectDeny, Field: cause.Field, Message: cause.Message}
	}
	return decisions, nil
}
