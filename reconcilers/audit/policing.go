package audit

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	policycache "github.com/vmstencil/stencil/cache/policies"
	"github.com/vmstencil/stencil/internal/excerpt"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/template"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Policies are the active policies. The cache of package cache/policies implements it.
type Policies interface {
	Synced() bool
	Set() *policyset.Set
	States() []policycache.State
	// Changed returns a channel that is closed when the set of active policies changes.
	Changed() <-chan struct{}
}

// Instancetypes holds instance types and preferences. The cache of package cache/instancetypes implements it.
type Instancetypes interface {
	// The Resolver waits a moment for an object that is not found; the one that Cached returns does not.
	sizing.Resolver
	Cached() sizing.Resolver
	Synced() bool
	// Changed returns a channel that is closed when an instance type or a preference changes.
	Changed() <-chan struct{}
}

// Namespaces returns the labels and annotations of namespaces. The cache of package cache/approvals implements it.
type Namespaces interface {
	Namespace(ctx context.Context, name string) (labels, annotations map[string]string, known bool)
}

// ruling is the decision of one policy on a VM that it applies to.
type ruling struct {
	policy, digest string
	severity       rego.Severity
	enforcement    policyset.Enforcement
	// objection is the first violation of its rule deny, or why it could not be evaluated; empty if there is none. It has at most
	// maximumCause bytes.
	objection string
	// failed is true if it could not be evaluated.
	failed bool
	// unknown is true if the objection may be about the request: the policy reads its time or its user, and when the VM was created it may have had
	// none.
	unknown bool
	// exception is the exception that allows the objection; nil if there is none.
	exception *policyset.Exception
}

// policing evaluates stored VMs against the policies of one snapshot, as if they were created now. A policy without rules for creation is
// skipped.
type policing struct {
	set           *policyset.Set
	exceptions    *policyset.Exceptions
	evaluator     *policyset.Evaluator
	templates     Templates
	instancetypes sizing.Resolver
	namespaces    Namespaces
	// now is when the audit began.
	now time.Time
	// namespaceCache caches namespaces, also those that are not found, so that each is waited for only once.
	namespaceCache sync.Map
}

const operationCreate = "CREATE"

// newAuditEvaluator returns an evaluator of the audit's own, so that admission requests do not wait for it. It uses one processor, because
// an audit is not urgent.
func newAuditEvaluator() *policyset.Evaluator {
	return policyset.NewEvaluator(policyset.Options{Workers: 1, Deadline: pageTimeout / 2})
}

// appliesIn reports whether any policy may apply to VMs of a namespace with these labels.
func (p *policing) appliesIn(namespace map[string]string) bool {
	if p == nil || p.set.Empty(rego.KindVirtualMachine, operationCreate) {
		return false
	}
	return slices.ContainsFunc(p.set.Entries(), func(e policyset.Entry) bool {
		return e.Match.Namespaces == nil || e.Match.Namespaces.Matches(labels.Set(namespace))
	})
}

// evaluate evaluates every policy that applies to a VM.
func (p *policing) evaluate(ctx context.Context, object map[string]any, namespace string) []ruling {
	c := policyinput.Case{
		Request:        rego.Request{Operation: operationCreate, Kind: rego.KindVirtualMachine, Namespace: namespace, Time: p.now},
		Object:         object,
		IgnoreSubjects: true,
	}
	metadata, _ := object["metadata"].(map[string]any)
	c.Request.Name = machine.StringAt(metadata, "name")
	c.Namespace = p.namespace(ctx, namespace)
	c.Template = p.template(object, namespace)
	entries := p.set.Matching(c.Query())
	if len(entries) == 0 {
		return nil
	}
	unresolved := c.Resolve(ctx, p.instancetypes)
	input, err := p.set.Input(c.Document())
	if err != nil {
		return failures(entries, "could not be evaluated: "+err.Error())
	}
	decision := p.evaluator.Evaluate(ctx, entries, input)
	policyinput.Redact(&decision)
	policyinput.AddUnresolved(&decision, entries, unresolved)
	c.Except(&decision, p.exceptions, p.now)
	return rulings(entries, decision)
}

func (p *policing) namespace(ctx context.Context, name string) rego.Namespace {
	if cached, found := p.namespaceCache.Load(name); found {
		return cached.(rego.Namespace)
	}
	namespace := rego.Namespace{Name: name}
	namespace.Labels, namespace.Annotations, _ = p.namespaces.Namespace(ctx, name)
	p.namespaceCache.Store(name, namespace)
	return namespace
}

func (p *policing) template(object map[string]any, namespace string) *policyinput.Template {
	origin, found := policyinput.OriginOf(object, namespace)
	if !found {
		return nil
	}
	stored := p.templates.Get(origin.Namespace, origin.Name)
	if stored == nil {
		return origin.Template(nil, nil)
	}
	var compiled *template.Compiled
	if c, err := stored.Compiled(); err == nil {
		compiled = c
	}
	return origin.Template(stored.Metadata(), compiled)
}

// rulings splits a decision by policy. The rule warn is advice, not a violation. A policy with
// failure mode Allow that could not be evaluated has no ruling.
func rulings(entries []policyset.Entry, decision policyset.Decision) []ruling {
	first := map[string]policyset.Violation{}
	for _, v := range slices.Concat(decision.Denials, decision.Warnings, decision.Audited) {
		if _, found := first[v.Policy]; !found && v.Rule == policyset.RuleDeny {
			first[v.Policy] = v
		}
	}
	excepted := map[string]policyset.Excepted{}
	for _, e := range decision.Excepted {
		if _, found := excepted[e.Policy]; !found && e.Rule == policyset.RuleDeny {
			excepted[e.Policy] = e
		}
	}
	failed := map[string]bool{}
	for _, e := range decision.Evaluations {
		failed[e.Policy] = e.Result.Failed()
	}
	var list []ruling
	for i := range entries {
		one := rulingOf(&entries[i])
		v, objects := first[one.policy]
		switch {
		case objects:
			one.objection, one.failed = excerpt.Of(v.Text(), maximumCause), v.Failure
			one.unknown = !v.Failure && policyset.ReadsRequest(entries[i].Policy)
		case failed[one.policy]:
			continue
		case excepted[one.policy].Exception != nil:
			v := excepted[one.policy]
			one.objection, one.exception = excerpt.Of(v.Text(), maximumCause), v.Exception
		}
		list = append(list, one)
	}
	return list
}

func rulingOf(e *policyset.Entry) ruling {
	one := ruling{policy: e.Policy.Name(), digest: e.Policy.Digest(), severity: e.Policy.Metadata().Severity, enforcement: e.Enforcement}
	if one.enforcement == "" {
		one.enforcement = policyset.EnforcementDeny
	}
	return one
}

func failures(entries []policyset.Entry, why string) []ruling {
	var list []ruling
	for i := range entries {
		if entries[i].FailureMode == policyset.FailureModeAllow {
			continue
		}
		one := rulingOf(&entries[i])
		one.objection, one.failed = excerpt.Of(why, maximumCause), true
		list = append(list, one)
	}
	return list
}

// policingOf takes a snapshot of the policies; it returns nil if policies are not evaluated.
func (r *Reconciler) policingOf(now time.Time) *policing {
	if r.options.Policies == nil {
		return nil
	}
	set := r.options.Policies.Set()
	r.evaluator.Retain(set)
	var exceptions *policyset.Exceptions
	if r.options.Exceptions != nil {
		exceptions = r.options.Exceptions.Set()
	}
	return &policing{
		set:           set,
		exceptions:    exceptions,
		evaluator:     r.evaluator,
		templates:     r.options.Templates,
		instancetypes: r.options.Instancetypes.Cached(),
		namespaces:    r.options.Namespaces,
		now:           now,
	}
}

// policed returns the namespaces in which a policy may apply to VMs.
func (p *policing) policed(namespaces []coverage.Namespace) map[string]bool {
	policed := map[string]bool{}
	for _, namespace := range namespaces {
		if p.appliesIn(namespace.Labels) {
			policed[namespace.Name] = true
		}
	}
	return policed
}
