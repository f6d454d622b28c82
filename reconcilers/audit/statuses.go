package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
	"github.com/vmstencil/stencil/template"
)

// conflictDelay gives the watch time to receive a conflicting write.
const conflictDelay = time.Second

// statuses is the controller that updates the statuses of the approvals, during and between audits. It handles a single request.
type statuses struct {
	options     Options
	lastResults *lastResults
}

// Reconcile implements reconcile.Reconciler.
func (s *statuses) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !s.options.Templates.Synced() {
		return reconcile.Result{RequeueAfter: syncDelay}, nil
	}
	snapshot, err := s.options.Coverage.Snapshot(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	approved := countTemplates(snapshot.Approvals, s.options.Templates.List())
	covered := map[string]int32{}
	for _, approvals := range snapshot.Governed() {
		for _, a := range approvals {
			covered[a.Name()]++
		}
	}
	conflict := false
	var failures []error
	for _, a := range snapshot.Approvals {
		o := observation{
			generation: a.Generation(),
			invalid:    a.Err(),
			templates:  approved[a.Name()].templates,
			unusable:   approved[a.Name()].unusable,
			namespaces: covered[a.Name()],
		}
		o.audited, o.auditFailure = s.lastResults.of(a)
		err := s.update(ctx, a.Object, statusOf(a.Object.Status, o))
		if apierrors.IsConflict(err) {
			conflict = true
			continue
		}
		failures = append(failures, err)
	}
	if err := errors.Join(failures...); err != nil || !conflict {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: conflictDelay}, nil
}

// update writes a status that differs from the stored one, and emits events and logs about the change.
func (s *statuses) update(ctx context.Context, stored *v1alpha1.TemplateApproval, status v1alpha1.TemplateApprovalStatus) error {
	if equality.Semantic.DeepEqual(stored.Status, status) {
		return nil
	}
	changed := stored.DeepCopy()
	changed.Status = status
	err := s.options.Client.Status().Update(ctx, changed)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the status of TemplateApproval %s: %w", stored.Name, err)
	}
	for _, n := range notes(stored.Status, status) {
		logf.FromContext(ctx).Info("the state of an approval has changed", "approval", stored.Name, "reason", n.reason, "message", n.message)
		s.options.Recorder.Eventf(changed, nil, n.kind, n.reason, "Audit", "%s", n.message)
	}
	return nil
}

// approvedTemplates are the templates that an approval approves at present.
type approvedTemplates struct {
	templates int32
	// unusable is as in an observation.
	unusable []string
}

// countTemplates returns for each approval the number of templates that it approves, and which of them it makes unusable. Templates that do
// not compile are not counted.
func countTemplates(approvals []coverage.Approval, templates []*templatecache.Template) map[string]approvedTemplates {
	type candidate struct {
		approval.Template
		compiled *template.Compiled
	}
	if len(approvals) == 0 {
		return nil
	}
	byNamespace := map[string][]candidate{}
	for _, t := range templates {
		compiled, err := t.Compiled()
		if err != nil {
			continue
		}
		byNamespace[t.Namespace] = append(byNamespace[t.Namespace], candidate{approval.Template{
			Namespace: t.Namespace, Name: t.Name, Labels: t.Labels(), Digest: compiled.Digest(),
		}, compiled})
	}
	counts := map[string]approvedTemplates{}
	for _, a := range approvals {
		var one approvedTemplates
		for _, namespace := range a.TemplateNamespaces() {
			for _, t := range byNamespace[namespace] {
				approved, _ := a.Approves(t.Template)
				if !approved {
					continue
				}
				one.templates++
				if missing := withoutValue(a.ClosedParameters(t.compiled)); len(missing) > 0 {
					one.unusable = append(one.unusable, fmt.Sprintf("template %s/%s (%s)", t.Namespace, t.Name, excerpt.List(missing, maximumPaths, "parameters")))
				}
			}
		}
		slices.Sort(one.unusable)
		counts[a.Name()] = one
	}
	return counts
}

// withoutValue returns the names of the parameters that are required and have no value.
func withoutValue(closed []v1beta1.Parameter) []string {
	var names []string
	for _, p := range closed {
		if approval.HasNoValue(p) {
			names = append(names, p.Name)
		}
	}
	return names
}

// note is an event about an approval.
type note struct{ kind, reason, message string }

// Reasons of events beside those of the condition Ready.
const (
	reasonViolations = "ViolationsFound"
	reasonConforming = "NoViolationsLeft"
)

// notes returns the events for a change from one status to another.
func notes(before, after v1alpha1.TemplateApprovalStatus) []note {
	var list []note
	was, is := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady), meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionReady)
	if was == nil || was.Status != is.Status || was.Reason != is.Reason {
		kind := corev1.EventTypeWarning
		if is.Status == metav1.ConditionTrue && is.Reason == v1alpha1.ReasonEnforced {
			kind = corev1.EventTypeNormal
		}
		list = append(list, note{kind, is.Reason, is.Message})
	}
	switch had, has := ptr.Deref(before.Violating, 0), ptr.Deref(after.Violating, 0); {
	case had == 0 && has > 0:
		first := after.Violations[0]
		list = append(list, note{corev1.EventTypeWarning, reasonViolations,
			excerpt.Of(fmt.Sprintf("%d VirtualMachines are not approved, %s/%s first: %s", has, first.Namespace, first.Name, first.Cause), maximumCause)})
	case had > 0 && has == 0 && after.Violating != nil:
		list = append(list, note{corev1.EventTypeNormal, reasonConforming, "every VirtualMachine is approved"})
	}
	return list
}
