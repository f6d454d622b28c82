package readiness

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/policies/sample"
	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
)

const (
	// maximumNamed is the maximum number of sources in a message.
	maximumNamed = 5
	// maximumMessage is the maximum length of a condition's message, in bytes.
	maximumMessage = 4096
)

// observation is what was gathered about a template.
type observation struct {
	generation int64
	// invalid is why it does not compile.
	invalid error
	// unrendered is why its dependencies could not be determined; nil if they are in found.
	unrendered *sample.Error
	found      v1beta1.TemplateSources
	// images of the DataSources among found, and now is the time at which their limits are checked.
	images []bootSource
	now    time.Time
	// foreign is set if the permissions of the template's writer mattered, and failed if they could not be checked.
	foreign bool
	// denied is set if one was missing.
	denied bool
	failed error
	// loans are the disks that are copied from a namespace that the template names; none if disks are not lent at all.
	loans []disks.Loan
	// compliance is the condition PolicyCompliant of this generation of the template; nil if there is none. unevaluated is set if it is missing because
	// policies have not been evaluated yet.
	compliance  *metav1.Condition
	unevaluated bool
	// dryRun is the result of a dry run; nil if dry runs are disabled.
	dryRun *dryRunResult
}

// decide returns the conditions of a template, without times.
func decide(o observation) []metav1.Condition {
	conditions := []metav1.Condition{valid(o), sourcesReady(o)}
	if len(o.loans) > 0 {
		conditions = append(conditions, disksLent(o.loans))
	}
	if stale, _ := staleness(o.images, o.now); stale != nil {
		conditions = append(conditions, *stale)
	}
	if o.dryRun != nil {
		conditions = append(conditions, dryRunSucceeded(o))
	}
	evaluated := conditions
	if o.compliance != nil {
		evaluated = append(evaluated[:len(evaluated):len(evaluated)], *o.compliance)
	} else if o.unevaluated {
		evaluated = append(evaluated[:len(evaluated):len(evaluated)], notEvaluated)
	}
	conditions = append(conditions, readiness(evaluated))
	for i := range conditions {
		conditions[i].ObservedGeneration = o.generation
		conditions[i].Message = excerpt.Of(conditions[i].Message, maximumMessage)
	}
	return conditions
}

// notEvaluated takes the place of the condition PolicyCompliant until there is one.
var notEvaluated = metav1.Condition{
	Type: v1beta1.ConditionPolicyCompliant, Status: metav1.ConditionUnknown, Reason: v1beta1.ReasonNotEvaluated,
	Message: "the policies have not been evaluated yet for this version of the template",
}

func valid(o observation) metav1.Condition {
	if o.invalid != nil {
		return metav1.Condition{
			Type: v1beta1.ConditionValid, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonInvalidConfiguration,
			Message: o.invalid.Error(),
		}
	}
	return metav1.Condition{Type: v1beta1.ConditionValid, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonCompiled, Message: "the template compiles"}
}

// dependency is an object that a template depends on, with its name in messages.
type dependency struct {
	what string
	key  sources.Key
	v1beta1.SourceStatus
	progress string
}

func list(found v1beta1.TemplateSources) []dependency {
	var all []dependency
	for _, v := range found.Volumes {
		all = append(all, dependency{"volume " + v.Volume, keyOf(v.Kind, v.Namespace, v.Name), v.SourceStatus, v.Progress})
	}
	if r := found.Instancetype; r != nil {
		all = append(all, dependency{"instance type", keyOf(r.Kind, r.Namespace, r.Name), r.SourceStatus, ""})
	}
	if r := found.Preference; r != nil {
		all = append(all, dependency{"preference", keyOf(r.Kind, r.Namespace, r.Name), r.SourceStatus, ""})
	}
	for _, n := range found.Networks {
		all = append(all, dependency{"network " + n.Network, keyOf(string(sources.Network), n.Namespace, n.Name), n.SourceStatus, ""})
	}
	return all
}

// unchecked reports whether Stencil does not look at the object: a parameter decides which one it is, Stencil or the template's writer may not
// read it, or KubeVirt infers it. Such objects do not affect the template.
func (d dependency) unchecked() bool {
	return slices.Contains([]string{reasonParameterRequired, reasonNotRead, reasonNotPermitted, reasonInferred}, d.Reason)
}

func keyOf(kind, namespace, name string) sources.Key {
	return sources.Key{Kind: sources.Kind(kind), Namespace: namespace, Name: name}
}

// rank is a state that affects whether a template can be used, and the condition SourcesReady of such a template.
type rank struct {
	state  v1beta1.SourceState
	status metav1.ConditionStatus
	reason string
}

// grave lists all ranks, worst first.
var grave = []rank{
	{v1beta1.SourceNotFound, metav1.ConditionFalse, v1beta1.ReasonSourceNotFound},
	{v1beta1.SourceNotReady, metav1.ConditionFalse, v1beta1.ReasonSourceNotReady},
	{v1beta1.SourceImporting, metav1.ConditionFalse, v1beta1.ReasonImporting},
	{v1beta1.SourceUnknown, metav1.ConditionUnknown, v1beta1.ReasonSourceUnknown},
}

// gravest returns the dependencies with the worst state that affects the template; none if it can be used.
func gravest(all []dependency) (of rank, worst []dependency) {
	for _, of = range grave {
		for _, one := range all {
			if one.State == of.state && !one.unchecked() {
				worst = append(worst, one)
			}
		}
		if len(worst) > 0 {
			return of, worst
		}
	}
	return rank{}, nil
}

func sourcesReady(o observation) metav1.Condition {
	made := metav1.Condition{Type: v1beta1.ConditionSourcesReady}
	if o.unrendered != nil {
		made.Status, made.Reason, made.Message = metav1.ConditionUnknown, o.unrendered.Reason, o.unrendered.Message
		return made
	}
	if rank, worst := gravest(list(o.found)); len(worst) > 0 {
		var named []string
		for _, one := range worst {
			text := one.what + ": " + one.Message
			if one.progress != "" {
				text += " (" + one.progress + ")"
			}
			named = append(named, text)
		}
		if more := len(named) - maximumNamed; more > 0 {
			named = append(named[:maximumNamed], fmt.Sprintf("and %d more", more))
		}
		made.Status, made.Reason, made.Message = rank.status, rank.reason, strings.Join(named, "; ")
		return made
	}
	made.Status, made.Reason, made.Message = metav1.ConditionTrue, v1beta1.ReasonAllReady, "everything that the template depends on can be used"
	if text := describe(o.images); text != "" {
		made.Message += "; " + text
	}
	if text := unchecked(list(o.found)); text != "" {
		made.Message += "; " + text
	}
	return made
}

// unchecked returns the objects that the state Ready does not include, for the message of SourcesReady; empty if there are none.
func unchecked(all []dependency) string {
	var named, relative []string
	for _, one := range all {
		switch {
		case one.unchecked():
			named = append(named, fmt.Sprintf("%s: %s (%s)", one.what, one.key, one.Reason))
		case one.State == v1beta1.SourceReady && one.Message != "":
			relative = append(relative, fmt.Sprintf("%s: %s: %s", one.what, one.key, one.Message))
		}
	}
	if len(named) > 0 {
		named[0] = "not checked: " + named[0]
	}
	return excerpt.List(append(named, relative...), maximumNamed, "objects")
}

// disksLent returns the condition DisksLent.
func disksLent(loans []disks.Loan) metav1.Condition {
	made := metav1.Condition{
		Type: v1beta1.ConditionDisksLent, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonLent,
		Message: "users in other namespaces who may use the template get copies of its disks",
	}
	var named []string
	for _, loan := range loans {
		if loan.Denial != "" {
			named = append(named, fmt.Sprintf("%s: %s", loan.Source.Field, loan.Denial))
		}
	}
	if len(named) > 0 {
		made.Status, made.Reason = metav1.ConditionFalse, v1beta1.ReasonNotLent
		made.Message = "VirtualMachines in other namespaces get this disk only where the ServiceAccount of their namespace may copy from " +
			loans[0].Source.Namespace + ": " + strings.Join(named, "; ")
	}
	return made
}

func dryRunSucceeded(o observation) metav1.Condition {
	v := o.dryRun
	return metav1.Condition{Type: v1beta1.ConditionDryRunSucceeded, Status: v.status, Reason: v.reason, Message: v.message}
}

// readiness returns the condition Ready: False if one of the conditions is, otherwise Unknown if one of them is not decided yet, otherwise True. A
// check that needs values of a user cannot be made for a template, and does not affect it.
func readiness(conditions []metav1.Condition) metav1.Condition {
	made := metav1.Condition{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonReconciled, Message: v1beta1.MessageReady}
	for _, each := range []struct{ kind, reason string }{
		{v1beta1.ConditionValid, v1beta1.ReasonInvalidConfiguration},
		{v1beta1.ConditionSourcesReady, v1beta1.ReasonSourcesNotReady},
		{v1beta1.ConditionPolicyCompliant, v1beta1.ReasonPolicyViolations},
		{v1beta1.ConditionDryRunSucceeded, v1beta1.ReasonDryRunFailed},
	} {
		one := meta.FindStatusCondition(conditions, each.kind)
		switch {
		case one == nil, one.Status == metav1.ConditionTrue, one.Reason == v1beta1.ReasonParametersRequired:
		case one.Status == metav1.ConditionFalse:
			made.Status, made.Reason, made.Message = metav1.ConditionFalse, each.reason, one.Message
			return made
		case made.Status == metav1.ConditionTrue:
			made.Status, made.Reason, made.Message = metav1.ConditionUnknown, one.Reason, one.Message
		}
	}
	return made
}
