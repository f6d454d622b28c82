package transfer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
	"github.com/vmstencil/stencil/seal"
	"github.com/vmstencil/stencil/transfer"
)

// sealOwner is the field manager of the condition Sealed of templates.
const sealOwner = "stencil-seal"

// sealCondition returns the condition for what a mover reports, which is not trusted.
func sealCondition(found *transfer.Seal, acknowledged bool) metav1.Condition {
	c := metav1.Condition{Type: v1beta1.ConditionSealed}
	switch found.Sealed {
	case seal.True:
		c.Status, c.Message = metav1.ConditionTrue, "nothing was found on the disks that identifies one VM"
	case seal.False:
		c.Status = metav1.ConditionFalse
	default:
		c.Status = metav1.ConditionUnknown
	}
	if c.Status != metav1.ConditionTrue {
		c.Message = sealMessage(found)
	}
	c.Reason = sealReason(c.Status, acknowledged)
	return c
}

func sealReason(status metav1.ConditionStatus, acknowledged bool) string {
	switch {
	case status == metav1.ConditionTrue:
		return v1beta1.ReasonSealed
	case acknowledged:
		return v1beta1.ReasonAcknowledged
	case status == metav1.ConditionFalse:
		return v1beta1.ReasonNotSealed
	}
	return v1beta1.ReasonNotExamined
}

// sealMessage returns as many lines as fit into a message, and the number of the others.
func sealMessage(found *transfer.Seal) string {
	const reserved = len("; and 1234567890 more")
	text, listed := "", 0
	for _, line := range found.Lines[:min(len(found.Lines), transfer.MaxSealLines)] {
		line = excerpt.Of(line, transfer.MaxSealLine)
		if len(text)+len("; ")+len(line)+reserved > maximumMessage {
			break
		}
		if listed++; listed > 1 {
			text += "; "
		}
		text += line
	}
	if more := found.Count - listed; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

func acknowledges(object client.Object) bool {
	return object.GetAnnotations()[contract.AnnotationSealAcknowledged] == "true"
}

// sealed sets the condition Sealed. Movers of an earlier version report nothing.
func (s *session) sealed(found *transfer.Seal) {
	if found == nil {
		return
	}
	s.setSealed(sealCondition(found, acknowledges(s.object)))
}

func (s *session) setSealed(c metav1.Condition) {
	c.ObservedGeneration, c.LastTransitionTime = s.object.GetGeneration(), metav1.NewTime(s.clock.Now())
	if meta.SetStatusCondition(s.conditions, c) && c.Reason == v1beta1.ReasonNotSealed {
		s.event(corev1.EventTypeWarning, v1beta1.ReasonNotSealed, c.Message)
	}
	slices.SortFunc(*s.conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
}

// report writes the condition to a template, if accept returns the generation of it that the report is about. A template with the same report is not written,
// because that may be acknowledged.
func (s *session) report(ctx context.Context, name string, accept func(*v1beta1.VirtualMachineTemplate) (generation int64, accepted bool)) {
	template := &v1beta1.VirtualMachineTemplate{}
	found, err := get(ctx, s.cluster, s.owner.namespace, name, template)
	if err == nil && found && !hasReport(template, *s.conditions) {
		if generation, accepted := accept(template); accepted {
			err = s.sealTemplate(ctx, template, generation)
		}
	}
	if err != nil {
		// It is a report, and must not hold anything up.
		s.event(corev1.EventTypeWarning, "SealNotReported", err.Error())
	}
}

// sealTemplate writes the condition, which is about this generation, to a template.
func (s *session) sealTemplate(ctx context.Context, template *v1beta1.VirtualMachineTemplate, generation int64) error {
	c := meta.FindStatusCondition(*s.conditions, v1beta1.ConditionSealed)
	if c == nil {
		return nil
	}
	next, changed := statuswriter.Transition(template.Status.Conditions, metav1.Condition{
		Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, ObservedGeneration: generation,
	}, s.clock.Now())
	if !changed {
		return nil
	}
	written := statuswriter.Object{
		Group: v1beta1.GroupVersion, Resource: "virtualmachinetemplates", Kind: "VirtualMachineTemplate", Namespace: template.Namespace, Name: template.Name, UID: template.UID,
	}
	return s.statuses.Apply(ctx, written, sealOwner, map[string]any{"conditions": []metav1.Condition{next}})
}

// hasReport reports whether the condition of a template is the same report, acknowledged or not.
func hasReport(template *v1beta1.VirtualMachineTemplate, conditions []metav1.Condition) bool {
	stored, c := meta.FindStatusCondition(template.Status.Conditions, v1beta1.ConditionSealed), meta.FindStatusCondition(conditions, v1beta1.ConditionSealed)
	return stored != nil && c != nil && stored.Status == c.Status && stored.Message == c.Message
}

// acknowledgementChanged reports whether the condition Sealed of an object has another reason than its annotation requires.
func acknowledgementChanged(object client.Object, conditions []metav1.Condition) bool {
	c := meta.FindStatusCondition(conditions, v1beta1.ConditionSealed)
	return c != nil && c.Reason != sealReason(c.Status, acknowledges(object))
}

// acknowledge changes the reason of the condition Sealed, and of that of the template if it is the same report.
func (s *session) acknowledge(ctx context.Context, templateName string) error {
	c := *meta.FindStatusCondition(*s.conditions, v1beta1.ConditionSealed)
	c.Reason = sealReason(c.Status, acknowledges(s.object))
	s.setSealed(c)
	template := &v1beta1.VirtualMachineTemplate{}
	found, err := get(ctx, s.cluster, s.owner.namespace, templateName, template)
	if err == nil && found && hasReport(template, *s.conditions) {
		err = s.sealTemplate(ctx, template, meta.FindStatusCondition(template.Status.Conditions, v1beta1.ConditionSealed).ObservedGeneration)
	}
	if err != nil {
		return err
	}
	return s.write(ctx)
}
