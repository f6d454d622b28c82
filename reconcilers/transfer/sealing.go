package transfer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func acknowledges(object *v1beta1.VirtualMachineTemplateImport) bool {
	return object.Annotations[contract.AnnotationSealAcknowledged] == "true"
}

// sealed sets the condition Sealed of the import. Movers of an earlier version report nothing.
func (i *importing) sealed(found *transfer.Seal) {
	if found == nil {
		return
	}
	i.setSealed(sealCondition(found, acknowledges(i.object)))
}

func (i *importing) setSealed(c metav1.Condition) {
	c.ObservedGeneration, c.LastTransitionTime = i.object.Generation, metav1.NewTime(i.clock.Now())
	if meta.SetStatusCondition(i.conditions, c) && c.Reason == v1beta1.ReasonNotSealed {
		i.event(corev1.EventTypeWarning, v1beta1.ReasonNotSealed, c.Message)
	}
	slices.SortFunc(*i.conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
}

// sealTemplate writes the condition of the import to its template.
func (i *importing) sealTemplate(ctx context.Context, template *v1beta1.VirtualMachineTemplate) error {
	c := meta.FindStatusCondition(*i.conditions, v1beta1.ConditionSealed)
	if c == nil {
		return nil
	}
	next, changed := statuswriter.Transition(template.Status.Conditions, metav1.Condition{
		Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, ObservedGeneration: template.Generation,
	}, i.clock.Now())
	if !changed {
		return nil
	}
	written := statuswriter.Object{
		Group: v1beta1.GroupVersion, Resource: "virtualmachinetemplates", Kind: "VirtualMachineTemplate", Namespace: template.Namespace, Name: template.Name, UID: template.UID,
	}
	return i.statuses.Apply(ctx, written, sealOwner, map[string]any{"conditions": []metav1.Condition{next}})
}

// acknowledgementChanged reports whether the condition of an ended import has another reason than its annotation requires.
func acknowledgementChanged(object *v1beta1.VirtualMachineTemplateImport) bool {
	c := meta.FindStatusCondition(object.Status.Conditions, v1beta1.ConditionSealed)
	return c != nil && c.Reason != sealReason(c.Status, acknowledges(object))
}

// acknowledge changes the reason of an ended import, and of its template.
func (i *importing) acknowledge(ctx context.Context) error {
	c := *meta.FindStatusCondition(i.object.Status.Conditions, v1beta1.ConditionSealed)
	c.Reason = sealReason(c.Status, acknowledges(i.object))
	i.setSealed(c)
	template := &v1beta1.VirtualMachineTemplate{}
	found, err := get(ctx, i.cluster, i.object.Namespace, i.templateName(), template)
	if err == nil && found && template.Labels[v1beta1.LabelTransferUID] == string(i.object.UID) {
		err = i.sealTemplate(ctx, template)
	}
	if err != nil {
		return err
	}
	return i.write(ctx)
}
