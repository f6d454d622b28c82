package proofs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/excerpt"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/policies/proof"
	"github.com/vmstencil/stencil/policies/sample"
	"github.com/vmstencil/stencil/reconcilers/internal/fingerprint"
	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/template"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// Evaluator evaluates policies; policyset.Evaluator implements it.
type Evaluator interface {
	Evaluate(ctx context.Context, entries []policyset.Entry, in *rego.Input) policyset.Decision
}

// subject is a template.
type subject struct {
	*templatecache.Template
	compiled *template.Compiled
	metadata fingerprint.Fingerprint
}

// question identifies a question.
type question struct {
	template, approval types.UID
	namespace          string
}

// basis is what the results of a question depend on besides the policies and the instance types.
type basis struct {
	compiled                         *template.Compiled
	templateMetadata, namespace      fingerprint.Fingerprint
	templateVersion, approvalVersion int64
}

// answer is what is cached for a question.
type answer struct {
	basis
	// varies means that a parameter has several values, with the approval or without it.
	varies bool
	// sizes are fingerprints of the instance types and preferences that were read, which did not differ when sizesChanged was open.
	sizes        map[size]fingerprint.Fingerprint
	sizesChanged <-chan struct{}
	// decided are the results, by name of the policy.
	decided []*decided
}

// size identifies an instance type or a preference.
type size struct{ kind, namespace, name, revision string }

// decided is the result of a policy.
type decided struct {
	policy  policyset.Policy
	objects labels.Selector
	status  proof.Status
	// values and text of the example, reason is why it was not decided. held and reads are names.
	values       []proof.Value
	text, reason string
	held, reads  []string
	// retry is when an unsuccessful attempt may be repeated.
	retry time.Time
}

// plain reports whether the policy holds, and there is no more to report.
func (d *decided) plain() bool {
	return d.status == proof.Holds && len(d.held) == 0 && len(d.reads) == 0
}

// of reports whether a result is that of an entry. Which requests an entry matches besides the labels of the object is decided before.
func (d *decided) of(entry *policyset.Entry) bool {
	return d.policy == entry.Policy && selectorText(d.objects) == selectorText(entry.Match.Objects)
}

func selectorText(s labels.Selector) string {
	if s == nil {
		return ""
	}
	return s.String()
}

// answer returns the results for a template, an approval or nil, and a namespace: cached ones, and those that were missing.
func (c *check) answer(ctx context.Context, s subject, a *approval.Approval, at place) *answer {
	key := question{template: s.UID, namespace: at.Name}
	is := basis{compiled: s.compiled, templateMetadata: s.metadata, namespace: at.read, templateVersion: s.Generation}
	if a != nil {
		key.approval, is.approvalVersion = a.UID(), a.Generation()
	}
	q := proof.Question{Template: s.Template, Approval: a, Namespace: at.Namespace, Sizes: c.sizes, Limit: c.limits.combinations}
	before, found := c.memory[key]
	if !found || before.basis != is || !c.sizesCurrent(ctx, before) {
		unlimited := q
		unlimited.Approval = nil
		before = &answer{basis: is, varies: q.Varies() || a != nil && unlimited.Varies(), sizes: map[size]fingerprint.Fingerprint{}}
	}
	next := &answer{basis: is, varies: before.varies, sizes: before.sizes, sizesChanged: c.sizesChanged}
	c.fresh[key] = next
	if a == nil && !next.varies {
		return next
	}
	now := c.options.Clock.Now()
	var missing []policyset.Entry
	for _, entry := range c.applying(&q) {
		known := slices.IndexFunc(before.decided, func(d *decided) bool { return d.of(&entry) })
		if known < 0 || !before.decided[known].retry.IsZero() && !now.Before(before.decided[known].retry) {
			missing = append(missing, entry)
			continue
		}
		next.decided = append(next.decided, before.decided[known])
	}
	if len(missing) > 0 {
		q.Policies, q.Sizes = policyset.NewSet(missing), recorder{c.sizes, next.sizes}
		next.decided = append(next.decided, c.prove(ctx, q)...)
		slices.SortFunc(next.decided, func(a, b *decided) int { return cmp.Compare(a.policy.Name(), b.policy.Name()) })
		c.spent += c.options.Clock.Since(now)
	}
	return next
}

// applying returns the policies that match VirtualMachines of a template in a namespace.
func (c *check) applying(q *proof.Question) []policyset.Entry {
	var entries []policyset.Entry
	matching := c.loose.Matching(sample.Case(q.Template, nil, q.Namespace, q.Time).Query())
	for _, entry := range c.denying.Entries() {
		if len(entries) < len(matching) && matching[len(entries)].Policy == entry.Policy {
			entries = append(entries, entry)
		}
	}
	return entries
}

// prove decides a question.
func (c *check) prove(ctx context.Context, q proof.Question) []*decided {
	found, err := proof.Prove(ctx, q, redacting{c.evaluator})
	retry := c.options.Clock.Now().Add(c.limits.retry)
	var results []*decided
	for _, entry := range q.Policies.Entries() {
		d := &decided{policy: entry.Policy, objects: entry.Match.Objects, status: proof.Undecided}
		switch {
		case ctx.Err() != nil:
			d.reason, d.retry = fmt.Sprintf("it takes more than the %s for all policies and approvals of a template", c.limits.template), retry
		case err != nil:
			d.reason = excerpt.Of(err.Error(), maximumText)
		default:
			d.take(&found.Policies[slices.IndexFunc(found.Policies, func(r proof.Result) bool { return r.Policy == entry.Policy.Name() })])
			if d.status == proof.Failed {
				d.retry = retry
			}
		}
		results = append(results, c.shared(d))
	}
	return results
}

// shared returns a plain result that others have as well: most results are plain.
func (c *check) shared(d *decided) *decided {
	if !d.plain() {
		return d
	}
	if known := c.plain[d.policy]; known != nil && selectorText(known.objects) == selectorText(d.objects) {
		return known
	}
	c.plain[d.policy] = d
	return d
}

const (
	// maximumText is the maximum length of what a policy reports, in bytes.
	maximumText = 512
	// maximumNames is the maximum number of names in a text.
	maximumNames = 5
)

func (d *decided) take(r *proof.Result) {
	d.status = r.Status
	if d.status == proof.Undecided {
		d.reason = excerpt.Of(r.Reason, maximumText)
	}
	if r.Example != nil {
		d.values, d.text = r.Example.Values, excerpt.Of(strings.Join(r.Example.Messages, "; "), maximumText)
	}
	for _, h := range r.Held {
		d.held = append(d.held, h.Parameter)
	}
	for _, property := range r.Reads {
		// Namespaces are decided separately if they differ there.
		if !strings.HasSuffix(property, "of the namespace") {
			d.reads = append(d.reads, property)
		}
	}
}

// redacting evaluates policies, and removes values from their errors: conditions are read by more users than the values.
type redacting struct{ Evaluator }

func (r redacting) Evaluate(ctx context.Context, entries []policyset.Entry, in *rego.Input) policyset.Decision {
	decision := r.Evaluator.Evaluate(ctx, entries, in)
	policyinput.Redact(&decision)
	return decision
}

// recorder records which instance types and preferences are read.
type recorder struct {
	sizing.Resolver
	seen map[size]fingerprint.Fingerprint
}

// Resolve implements sizing.Resolver.
func (r recorder) Resolve(ctx context.Context, reference sizing.Reference) (map[string]any, error) {
	object, err := r.Resolver.Resolve(ctx, reference)
	at := size{reference.Kind, reference.Namespace, reference.Name, reference.Revision}
	if _, known := r.seen[at]; !known {
		r.seen[at] = fingerprintOf(object, err)
	}
	return object, err
}

// sizesCurrent reports whether the instance types and preferences of an answer are still the same.
func (c *check) sizesCurrent(ctx context.Context, a *answer) bool {
	if a.sizesChanged == c.sizesChanged {
		return true
	}
	for at, before := range a.sizes {
		object, err := c.sizes.Resolve(ctx, sizing.Reference{Kind: at.kind, Namespace: at.namespace, Name: at.name, Revision: at.revision})
		if fingerprintOf(object, err) != before {
			return false
		}
	}
	return true
}

func fingerprintOf(object map[string]any, err error) fingerprint.Fingerprint {
	if err != nil {
		return fingerprint.Of(err.Error())
	}
	return fingerprint.Of(object)
}
