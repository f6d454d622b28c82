package capture

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/internal/identity"
	capturing "github.com/vmstencil/stencil/reconcilers/capture/conversion"
)

// maximumMessage is the maximum length of a condition's message in bytes; the definition allows 32 KiB.
const maximumMessage = 8 << 10

// conditions are the conditions of a request, with changes that are not written yet.
type conditions struct {
	list       []metav1.Condition
	generation int64
	now        time.Time
}

func conditionsOf(s *state) *conditions {
	return &conditions{list: slices.Clone(s.request.Status.Conditions), generation: s.request.Generation, now: s.now}
}

func (c *conditions) set(kind string, status metav1.ConditionStatus, reason, message string) {
	if kind == v1beta1.ConditionReady {
		c.set(v1beta1.ConditionCompleted, status, reason, message)
	}
	meta.SetStatusCondition(&c.list, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: excerpt.Of(message, maximumMessage),
		ObservedGeneration: c.generation, LastTransitionTime: metav1.NewTime(c.now),
	})
}

// differ reports whether the conditions differ from those of the request.
func (c *conditions) differ(s *state) bool {
	return !equality.Semantic.DeepEqual(c.list, s.request.Status.Conditions)
}

// progressing sets the conditions of a request that does something or waits.
func (c *conditions) progressing(reason, message string) {
	c.set(v1beta1.ConditionProgressing, metav1.ConditionTrue, reason, message)
	c.set(v1beta1.ConditionReady, metav1.ConditionFalse, reason, message)
}

// failed sets the conditions of a request that has ended without a template.
func (c *conditions) failed(reason, message string) {
	c.set(v1beta1.ConditionProgressing, metav1.ConditionFalse, v1beta1.ReasonFailed, message)
	c.set(v1beta1.ConditionReady, metav1.ConditionFalse, reason, message)
}

// finished sets the conditions of a request that has a template, and reports whether the template can be used.
func (c *conditions) finished(name string) (usable bool) {
	made := fmt.Sprintf("VirtualMachineTemplate %s was made", name)
	c.set(v1beta1.ConditionProgressing, metav1.ConditionFalse, v1beta1.ReasonReconciled, made)
	complete := meta.FindStatusCondition(c.list, v1beta1.ConditionComplete)
	if complete != nil && complete.Status == metav1.ConditionFalse && complete.Reason == v1beta1.ReasonUnreachable {
		c.set(v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonUnreachable, made+", and refers to objects that its VirtualMachines cannot use: see the condition Complete")
		return false
	}
	c.set(v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonReconciled, made)
	return true
}

// captured sets the conditions about what was captured and which secrets were found in it.
func (c *conditions) captured(result *capturing.Result) {
	if len(result.Left) == 0 {
		message := "everything of the VirtualMachine is in the template"
		if len(result.Identity.Removed) > 0 {
			message += ", except for what identifies it"
		}
		c.set(v1beta1.ConditionComplete, metav1.ConditionTrue, v1beta1.ReasonEverythingCaptured, message)
	} else {
		reason, messages := v1beta1.ReasonLeftBehind, make([]string, len(result.Left))
		for i, each := range result.Left {
			messages[i] = each.What
			if each.Unreachable {
				reason = v1beta1.ReasonUnreachable
			}
		}
		c.set(v1beta1.ConditionComplete, metav1.ConditionFalse, reason, strings.Join(messages, "; "))
	}
	c.secrets(result)
	c.identity(result.Identity)
}

// identity sets the condition about what identifies the VM.
func (c *conditions) identity(found identity.Report) {
	var messages []string
	if len(found.Removed) > 0 {
		messages = append(messages, "left out: "+strings.Join(found.Removed, ", "))
	}
	if len(found.Renamed) > 0 {
		messages = append(messages, "have the new name: "+strings.Join(found.Renamed, ", "))
	}
	if len(found.Kept) > 0 {
		kept := "all VirtualMachines of the template have it, change the template before it is used: " + strings.Join(found.Kept, ", ")
		c.set(v1beta1.ConditionIdentityFound, metav1.ConditionTrue, v1beta1.ReasonIdentityKept, strings.Join(append([]string{kept}, messages...), "; "))
		return
	}
	messages = append([]string{"nothing was found in the template that identifies the captured VirtualMachine"}, messages...)
	c.set(v1beta1.ConditionIdentityFound, metav1.ConditionFalse, v1beta1.ReasonNoIdentity, strings.Join(messages, "; "))
}

func (c *conditions) secrets(result *capturing.Result) {
	var retained, replaced []string
	for _, each := range result.Secrets {
		if each.Parameter == "" {
			retained = append(retained, each.Path)
		} else {
			replaced = append(replaced, each.Path+" is the parameter "+each.Parameter)
		}
	}
	var messages []string
	if len(retained) > 0 {
		messages = append(messages, "users who may read the template can read "+strings.Join(retained, ", "))
	}
	messages = append(messages, replaced...)
	if len(result.Unsearched) > 0 {
		messages = append(messages, "not of a format that can be searched: "+strings.Join(result.Unsearched, ", "))
	}
	message := strings.Join(messages, "; ")
	switch {
	case len(retained) > 0:
		c.set(v1beta1.ConditionSecretsFound, metav1.ConditionTrue, v1beta1.ReasonSecretsKept, message)
	case len(replaced) > 0:
		c.set(v1beta1.ConditionSecretsFound, metav1.ConditionTrue, v1beta1.ReasonSecretsParameterized, message)
	case len(result.Unsearched) > 0:
		c.set(v1beta1.ConditionSecretsFound, metav1.ConditionUnknown, v1beta1.ReasonNotSearched, message)
	default:
		c.set(v1beta1.ConditionSecretsFound, metav1.ConditionFalse, v1beta1.ReasonNoSecrets, "no password and no private key was found in cloud-init data")
	}
}
