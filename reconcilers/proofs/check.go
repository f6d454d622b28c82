package proofs

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
	"github.com/vmstencil/stencil/reconcilers/internal/fingerprint"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// operation is the operation of the requests that are decided, see sample.Case.
const operation = "CREATE"

// check is one run over the templates.
type check struct {
	*Reconciler
	// denying are the policies with enforcement Deny, loose the same whatever the labels of the object.
	denying, loose *policyset.Set
	distinction    *distinction
	sizes          sizing.Resolver
	sizesChanged   <-chan struct{}
	approvals      []checkedApproval
	// fresh are the answers of this run, and spent is how long it took to find new ones.
	fresh map[question]*answer
	spent time.Duration
	// plain are the plain results of this run, see check.shared.
	plain map[policyset.Policy]*decided
}

// checkedApproval is an approval, where it is decided, and what was found.
type checkedApproval struct {
	coverage.Approval
	in    places
	found findings
}

func (r *Reconciler) newCheck(ctx context.Context) (*check, error) {
	o := r.options
	// Read before everything else: a later change triggers the next check.
	c := &check{Reconciler: r, sizesChanged: o.Instancetypes.Changed(), sizes: o.Instancetypes.Cached(), fresh: map[question]*answer{}, plain: map[policyset.Policy]*decided{}}
	var denying, loose []policyset.Entry
	for _, entry := range o.Policies.Set().Entries() {
		if entry.Enforcement == policyset.EnforcementDeny || entry.Enforcement == "" {
			denying = append(denying, entry)
			entry.Match.Objects = nil
			loose = append(loose, entry)
		}
	}
	c.denying, c.loose = policyset.NewSet(denying), policyset.NewSet(loose)
	c.distinction = distinctionOf(c.denying)
	snapshot, err := o.Approvals.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range snapshot.Approvals {
		c.approvals = append(c.approvals, checkedApproval{Approval: a})
	}
	if c.denying.Empty(rego.KindVirtualMachine, operation) {
		return c, nil
	}
	selected := map[*approval.Approval][]string{}
	governed := snapshot.Governed()
	for _, namespace := range snapshot.Namespaces {
		for _, a := range governed[namespace.Name] {
			selected[a] = append(selected[a], namespace.Name)
		}
	}
	for i := range c.approvals {
		a := &c.approvals[i]
		if a.in, err = c.placesIn(ctx, selected[a.Approval.Approval]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// template decides the questions about a template, and returns its condition.
func (c *check) template(ctx context.Context, t *templatecache.Template) (*metav1.Condition, error) {
	compiled, invalid := t.Compiled()
	if invalid != nil || c.denying.Empty(rego.KindVirtualMachine, operation) {
		return nil, ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, c.limits.template)
	defer cancel()
	s := subject{Template: t, compiled: compiled, metadata: fingerprint.Of(t.Labels(), t.Annotations())}
	approvable := approval.Template{Namespace: t.Namespace, Name: t.Name, Labels: t.Labels(), Digest: compiled.Digest()}
	name := t.Namespace + "/" + t.Name
	var all findings
	varies, approved := false, false
	for i := range c.approvals {
		a := &c.approvals[i]
		if len(a.in.decided) == 0 || !a.approves(approvable) {
			continue
		}
		approved = true
		for _, at := range a.in.decided {
			found := c.answer(limited, s, a.Approval.Approval, at)
			varies = varies || found.varies
			where := ""
			if len(a.in.decided) > 1 {
				where = at.Name
			}
			all.add(found, finding{approval: a.Name(), namespace: where})
			a.found.add(found, finding{template: name, namespace: where})
		}
		if a.in.more > 0 && all.any {
			text := fmt.Sprintf("%d more namespaces of approval %s differ for policies and were not decided", a.in.more, a.Name())
			all.open = append(all.open, text)
			if !slices.Contains(a.found.open, text) {
				a.found.open = append(a.found.open, text)
			}
		}
	}
	if !approved {
		at, err := c.place(ctx, t.Namespace)
		if err != nil {
			return nil, err
		}
		found := c.answer(limited, s, nil, at)
		varies = found.varies
		all.add(found, finding{})
	}
	if !varies {
		return nil, ctx.Err()
	}
	return all.condition(t.Generation, "no policy denies a VirtualMachine of this template, whatever the allowed values of its parameters"), ctx.Err()
}

// approves reports whether the approval approves a template.
func (a *checkedApproval) approves(t approval.Template) bool {
	// Approves is slow for templates that are not listed, because it returns why.
	if !slices.ContainsFunc(a.Object.Spec.Templates, func(listed v1alpha1.ApprovedTemplate) bool { return approval.Lists(&listed, t) }) {
		return false
	}
	is, _ := a.Approves(t)
	return is
}

func (a *checkedApproval) condition() *metav1.Condition {
	return a.found.condition(a.Generation(), "no policy denies a VirtualMachine that this approval approves")
}
