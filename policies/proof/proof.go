package proof

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/vmstencil/stencil/approval"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/policies/sample"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// DefaultLimit is the number of combinations of values above which a policy is not decided.
const DefaultLimit = 100_000

// Question is what is to be proved: that no VirtualMachine of a template that an approval allows is denied.
type Question struct {
	Template sample.Template
	// Approval approves the template; nil where VirtualMachines need none.
	Approval *approval.Approval
	Policies *policyset.Set
	// Namespace, User and Time are those of the request. Without a user, subjects are ignored. A zero time is unknown, which policies see as null.
	Namespace rego.Namespace
	User      rego.UserInfo
	Time      time.Time
	// Values are those at which parameters are held, by name, whether their values are finite or not.
	Values map[string]string
	// Sizes has the instance types and preferences.
	Sizes sizing.Resolver
	// Limit is the number of combinations; DefaultLimit if 0.
	Limit int
}

// Evaluator evaluates policies; policyset.Evaluator implements it.
type Evaluator interface {
	Evaluate(ctx context.Context, entries []policyset.Entry, in *rego.Input) policyset.Decision
}

// Status is the result for one policy.
type Status string

// The results, the worst first.
const (
	// Counterexample means that rule deny finds something in an approved VirtualMachine.
	Counterexample Status = "counterexample"
	// Failed means that the policy cannot be evaluated for an approved VirtualMachine.
	Failed Status = "error"
	// Undecided means that not all combinations could be tried.
	Undecided Status = "not decided"
	// Holds means that rule deny finds nothing in any approved VirtualMachine.
	Holds Status = "holds"
)

// Proof is the result for a template and an approval.
type Proof struct {
	// Policies are the results of the policies that match VirtualMachines of the template, by name.
	Policies []Result `json:"policies"`
	// Never are values that the approval allows, and with which every VirtualMachine is denied, if others are not. They are known if all policies were
	// decided together.
	Never []Value `json:"never,omitempty"`
}

// Result is the result of one policy.
type Result struct {
	Policy      string                `json:"policy"`
	Enforcement policyset.Enforcement `json:"enforcement"`
	Status      Status                `json:"result"`
	// Combinations is the number of combinations of values, without the values of Unread. Approved is the number of those that template and approval
	// allow, and Distinct the number of VirtualMachines among these that policies can tell apart.
	Combinations uint64 `json:"combinations"`
	Approved     int    `json:"approved"`
	Distinct     int    `json:"distinct"`
	// Denied is the number of approved combinations in which rule deny finds something, and Failures that of those for which the policy cannot be evaluated.
	Denied   int `json:"denied"`
	Failures int `json:"failures,omitempty"`
	// Example is the violation by, or the failure of, the VirtualMachine with the fewest values that differ from the base; nil if there is none.
	Example *Example `json:"example,omitempty"`
	// Reason is why not all combinations were decided, or that nothing is approved.
	Reason string `json:"reason,omitempty"`
	// Unread are parameters whose values were not combined, because the policies read nothing that depends on them.
	Unread []string `json:"unread,omitempty"`
	// Held are the parameters with more values than those that were tried, if the policy may read what depends on them.
	Held []Held `json:"held,omitempty"`
	// Reads are the properties of the request that the policy reads, and that were held: time, user, labels and annotations of the namespace.
	Reads []string `json:"reads,omitempty"`
}

// Example is a VirtualMachine that is approved and denied.
type Example struct {
	// Values are those that differ from the base; none if the VirtualMachine of the defaults is denied.
	Values []Value `json:"values"`
	// Messages are the findings, or the failure. One with the value of a sensitive parameter is masked.
	Messages []string `json:"messages"`
}

// Value is the value of a parameter. That of a sensitive one is masked.
type Value struct {
	Parameter string `json:"parameter"`
	Value     string `json:"value"`
}

// Held is a parameter that was held at a value, and why.
type Held struct {
	Value
	Reason string `json:"reason"`
	// Given means that the value is one of the question.
	Given bool `json:"given,omitempty"`
}

// Prove decides a question. The error is that of ctx.
func Prove(ctx context.Context, q Question, evaluator Evaluator) (*Proof, error) {
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	entries := q.candidates()
	compiled, invalid := q.Template.Compiled()
	if invalid != nil {
		return undecided(entries, "the template does not compile: "+invalid.Error()), nil //nolint:nilerr // it is the result
	}
	d := decider{Question: q, compiled: compiled, evaluator: evaluator, parameters: parametersOf(&q, compiled)}
	// Whatever is decided for the objects that exist now holds no longer when they change.
	dependent := &Proof{}
	entries = slices.DeleteFunc(entries, func(entry policyset.Entry) bool {
		reason := dependence(entry.Policy)
		if reason != "" {
			dependent.Policies = append(dependent.Policies, undecided([]policyset.Entry{entry}, reason).Policies...)
		}
		return reason != ""
	})
	decided, err := d.decide(ctx, entries)
	if err != nil || len(dependent.Policies) == 0 {
		return decided, err
	}
	decided.Policies = append(decided.Policies, dependent.Policies...)
	slices.SortStableFunc(decided.Policies, func(a, b Result) int { return strings.Compare(a.Policy, b.Policy) })
	return decided, nil
}

// dependence returns which values a policy reads that depend on other objects of the namespace; empty if it reads none, or if they were given.
func dependence(p policyset.Policy) string {
	policy, ok := p.(*rego.Policy)
	if !ok {
		return ""
	}
	for i, reference := range policy.References() {
		switch {
		case policy.Data()[i].Value != nil:
		case reference.VirtualMachines != nil:
			return fmt.Sprintf("data.cluster.%s depends on the other VirtualMachines of the namespace", reference.Name)
		case reference.ResourceQuota != "":
			return fmt.Sprintf("data.cluster.%s depends on ResourceQuota %s of the namespace", reference.Name, reference.ResourceQuota)
		}
	}
	return ""
}

// Varies reports whether a parameter has several values that would be decided.
func (q Question) Varies() bool {
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	compiled, invalid := q.Template.Compiled()
	return invalid == nil && slices.ContainsFunc(parametersOf(&q, compiled), func(p parameter) bool { return p.size > 1 })
}

// candidates returns the policies that match VirtualMachines of the template, whatever their labels.
func (q *Question) candidates() []policyset.Entry {
	all := slices.Clone(q.Policies.Entries())
	for i := range all {
		all[i].Match.Objects = nil
	}
	matching := policyset.NewSet(all).Matching(q.request(nil).Query())
	return slices.DeleteFunc(slices.Clone(q.Policies.Entries()), func(entry policyset.Entry) bool {
		return !slices.ContainsFunc(matching, func(other policyset.Entry) bool { return other.Policy == entry.Policy })
	})
}

// template returns the template as approvals evaluate it.
func (d *decider) template() approval.Template {
	metadata := d.Template.Metadata()
	return approval.Template{Namespace: metadata.Namespace, Name: metadata.Name, Labels: metadata.Labels, Digest: d.compiled.Digest()}
}

// objections returns why the approval does not allow a VirtualMachine.
func (d *decider) objections(vm *sample.VM) []approval.Objection {
	if d.Approval == nil {
		return nil
	}
	from := d.template()
	return d.Approval.Objections(approval.Question{
		User:   authenticationv1.UserInfo{Username: d.User.Username, Groups: d.User.Groups},
		Anyone: !d.hasUser(), Template: from, Sensitive: d.compiled.Sensitive, Declared: d.compiled,
		Values: vm.Values, Given: vm.Given, Objects: approval.ObjectsOf(from, d.compiled),
	})
}

func (q *Question) hasUser() bool { return q.User.Username != "" || len(q.User.Groups) > 0 }

func undecided(entries []policyset.Entry, reason string) *Proof {
	p := &Proof{}
	for i := range entries {
		p.Policies = append(p.Policies, Result{Policy: entries[i].Policy.Name(), Enforcement: entries[i].Enforcement, Status: Undecided, Reason: reason})
	}
	return p
}
