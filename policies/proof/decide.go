package proof

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/approval"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/policies/sample"
	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/template"
)

// decider decides policies for the parameters of one template.
type decider struct {
	Question
	compiled   *template.Compiled
	evaluator  Evaluator
	parameters []parameter
}

// decide decides policies together, or each alone if there are too many combinations for that.
func (d decider) decide(ctx context.Context, entries []policyset.Entry) (*Proof, error) {
	tried := d.parameters
	if combinations(tried) > uint64(d.Limit) { //nolint:gosec // a limit is positive
		tried = d.pruned(entries)
	}
	number := combinations(tried)
	switch {
	case number <= uint64(d.Limit): //nolint:gosec // as above
		return newEnumeration(d, entries, tried).run(ctx)
	case len(entries) > 1:
		p := &Proof{}
		for i := range entries {
			one, err := d.decide(ctx, entries[i:i+1])
			if err != nil {
				return nil, err
			}
			p.Policies = append(p.Policies, one.Policies...)
		}
		return p, nil
	default:
		p := undecided(entries, fmt.Sprintf("%d combinations of values, the limit is %d", number, d.Limit))
		for i := range p.Policies {
			p.Policies[i].Combinations = number
		}
		return p, nil
	}
}

// combinations returns the number of combinations of values, at most math.MaxUint64.
func combinations(parameters []parameter) uint64 {
	product := uint64(1)
	for i := range parameters {
		high, low := bits.Mul64(product, parameters[i].size)
		if product = low; high > 0 {
			return math.MaxUint64
		}
	}
	return product
}

// pruned returns the parameters with one value for each of which the policies read nothing. Values that the approval allows only with certain values of
// others are all retained.
func (d decider) pruned(entries []policyset.Entry) []parameter {
	if d.Approval != nil && d.Approval.RelatesParameters() {
		return d.parameters
	}
	parameters := slices.Clone(d.parameters)
	for i := range parameters {
		p := &parameters[i]
		if slices.ContainsFunc(entries, func(entry policyset.Entry) bool { return dependsOn(&entry, p) }) {
			continue
		}
		first := max(0, slices.IndexFunc(p.values, func(value string) bool { return d.allows(p.name, value) }))
		p.omitted = p.omitted && first == 0
		p.values, p.size = p.values[first:first+1], 1
	}
	return parameters
}

// allows reports whether the approval allows a value, whatever those of other parameters.
func (d decider) allows(name, value string) bool {
	return d.Approval == nil || len(d.Approval.Parameters(map[string]string{name: value}, nil)) == 0
}

// enumeration tries all combinations of values.
type enumeration struct {
	decider
	set        *policyset.Set
	reads      *rego.Reads
	parameters []parameter
	// sized means that a policy reads the instance type or the preference.
	sized bool
	// at are the indexes of the values of the current combination.
	at []int

	results []Result
	// approved is the number of approved combinations, admitted that of those which no policy denies.
	approved, admitted int
	// differences are the numbers of values that differ from the base in the examples.
	differences []int
	// unresolved is the first instance type or preference that does not exist, objection why the first combination that is not approved is not, and
	// rejection why the template rejects the first that it rejects.
	unresolved, objection, rejection string
	// open means that the approval may allow a combination with other values of the parameters that are held.
	open bool
	// base are the values of the first combination.
	base map[string]string
	// seen are the findings in what policies can tell apart.
	seen map[string]findings
	// values count, by parameter and value, the approved VirtualMachines and those of them that are denied.
	values [][]struct{ approved, denied int }
}

// findings of the policies that match a VirtualMachine, by the index of the policy, and whether any denies.
type findings struct {
	of     map[int][]policyset.Violation
	denied bool
}

func newEnumeration(d decider, entries []policyset.Entry, parameters []parameter) *enumeration {
	e := &enumeration{
		decider: d, set: policyset.NewSet(entries), reads: readsOf(entries), parameters: parameters,
		at: make([]int, len(parameters)), results: undecided(entries, "").Policies, differences: make([]int, len(entries)), seen: map[string]findings{},
	}
	for i := range entries {
		e.sized = e.sized || readsSizes(&entries[i])
	}
	for i := range parameters {
		e.values = append(e.values, make([]struct{ approved, denied int }, len(parameters[i].values)))
	}
	return e
}

func (e *enumeration) run(ctx context.Context) (*Proof, error) {
	for more := len(e.results) > 0; more; more = e.next() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		vm, rejected := sample.With(e.Template, e.given())
		switch {
		case rejected != nil && rejected.Reason == v1beta1.ReasonParametersRequired:
			return undecided(e.set.Entries(), rejected.Message), nil
		case rejected != nil:
			if e.rejection == "" {
				e.rejection = rejected.Message
			}
			continue
		}
		if e.base == nil {
			e.base = vm.Values
		}
		if objections := e.objections(vm); len(objections) > 0 {
			e.deny(objections)
			continue
		}
		if err := e.evaluate(ctx, vm); err != nil {
			return nil, err
		}
	}
	return e.proof(), nil
}

// deny records why the current combination is not approved.
func (e *enumeration) deny(objections []approval.Objection) {
	if e.objection == "" {
		e.objection = objections[0].String()
	}
	e.open = e.open || !slices.ContainsFunc(objections, func(o approval.Objection) bool {
		return !slices.ContainsFunc(e.parameters, func(p parameter) bool { return p.why != "" && o.Field == "parameters["+p.name+"]" })
	})
}

// next advances to the next combination, and reports whether there is one.
func (e *enumeration) next() bool {
	for i := len(e.at) - 1; i >= 0; i-- {
		if e.at[i]++; e.at[i] < len(e.parameters[i].values) {
			return true
		}
		e.at[i] = 0
	}
	return false
}

// given returns the values that a user gives for the current combination.
func (e *enumeration) given() map[string]string {
	given := map[string]string{}
	for i, at := range e.at {
		if p := &e.parameters[i]; at > 0 || !p.omitted {
			given[p.name] = p.values[at]
		}
	}
	return given
}

// evaluate evaluates the policies for an approved VirtualMachine.
func (e *enumeration) evaluate(ctx context.Context, vm *sample.VM) error {
	c := e.request(vm)
	entries := e.set.Matching(c.Query())
	var unresolved field.ErrorList
	if e.sized {
		unresolved = c.Resolve(ctx, e.Sizes)
	}
	input, err := rego.NewInput(c.Document())
	if err != nil {
		return fmt.Errorf("showing a VirtualMachine to policies: %w", err)
	}
	var key strings.Builder
	for i := range entries {
		fmt.Fprintf(&key, "%s\n", entries[i].Policy.Name())
	}
	fmt.Fprintf(&key, "%v %x", unresolved, e.reads.Digest(input))
	found, known := e.seen[key.String()]
	if !known {
		decision := e.evaluator.Evaluate(ctx, entries, input)
		if err := ctx.Err(); err != nil {
			return err
		}
		found = e.sorted(decision, unresolved, vm.Secrets)
		e.seen[key.String()] = found
	}
	e.count(found)
	return nil
}

// sorted sorts the violations of rule deny by policy. Texts with values of sensitive parameters are masked.
func (e *enumeration) sorted(decision policyset.Decision, unresolved field.ErrorList, secrets []string) findings {
	f := findings{of: map[int][]policyset.Violation{}}
	for _, evaluated := range decision.Evaluations {
		i := e.index(evaluated.Policy)
		entry := &e.set.Entries()[i]
		if len(unresolved) > 0 && readsSizes(entry) {
			if e.unresolved == "" {
				e.unresolved = unresolved[0].Error()
			}
			e.results[i].Reason = e.unresolved
			continue
		}
		if evaluated.Result.Failed() {
			// Whatever the failure mode decides.
			f.of[i] = append(f.of[i], policyset.Violation{Failure: true, Finding: rego.Finding{Message: evaluated.Err.Error()}})
		}
		for _, list := range [][]policyset.Violation{decision.Denials, decision.Warnings, decision.Audited} {
			for _, v := range list {
				if v.Policy == evaluated.Policy && v.Rule == policyset.RuleDeny && !v.Failure {
					f.of[i] = append(f.of[i], v)
				}
			}
		}
		if e.readsSensitive(entry) {
			mask(f.of[i], secrets)
		}
	}
	f.denied = slices.ContainsFunc(decision.Denials, func(v policyset.Violation) bool { return !v.Failure && len(f.of[e.index(v.Policy)]) > 0 })
	return f
}

// readsSensitive reports whether a policy may quote the value of a sensitive parameter.
func (e *enumeration) readsSensitive(entry *policyset.Entry) bool {
	return slices.ContainsFunc(e.parameters, func(p parameter) bool { return p.sensitive && dependsOn(entry, &p) })
}

// mask replaces what policies report if it has a secret.
func mask(violations []policyset.Violation, secrets []string) {
	for i := range violations {
		text := violations[i].Text()
		if slices.ContainsFunc(secrets, func(secret string) bool { return strings.Contains(text, secret) }) {
			violations[i].Finding = rego.Finding{Message: policyinput.Masked}
		}
	}
}

func (e *enumeration) index(policy string) int {
	return slices.IndexFunc(e.results, func(r Result) bool { return r.Policy == policy })
}

// count adds the current combination to the results.
func (e *enumeration) count(f findings) {
	e.approved++
	if !f.denied {
		e.admitted++
	}
	differing := 0
	for i, at := range e.at {
		if at > 0 {
			differing++
		}
		e.values[i][at].approved++
		if f.denied {
			e.values[i][at].denied++
		}
	}
	for i, violations := range f.of {
		r := &e.results[i]
		status := Counterexample
		if violations[0].Failure {
			status = Failed
			r.Failures++
		} else {
			r.Denied++
		}
		// A counterexample replaces a failure.
		if r.Example != nil && (r.Status == Counterexample && status == Failed || r.Status == status && differing >= e.differences[i]) {
			continue
		}
		r.Status, r.Example, e.differences[i] = status, &Example{}, differing
		for _, v := range violations {
			r.Example.Messages = append(r.Example.Messages, v.Text())
		}
		for j, at := range e.at {
			if at > 0 {
				r.Example.Values = append(r.Example.Values, e.parameters[j].shown(at))
			}
		}
	}
}

// shown returns one of the values of a parameter.
func (p *parameter) shown(at int) Value { return p.masked(p.values[at]) }

func (p *parameter) masked(value string) Value {
	if p.sensitive && value != "" {
		value = policyinput.Masked
	}
	return Value{p.name, value}
}

// proof returns the results.
func (e *enumeration) proof() *Proof {
	p := &Proof{Policies: e.results}
	for i := range p.Policies {
		r, entry := &p.Policies[i], &e.set.Entries()[i]
		r.Combinations, r.Approved, r.Distinct, r.Unread = combinations(e.parameters), e.approved, len(e.seen), e.unread()
		r.Held, r.Reads = e.held(entry), e.requestReads(entry)
		switch {
		case r.Status != Undecided || r.Reason != "": // the reason is a missing instance type
		case e.approved > 0:
			r.Status = Holds
		case e.objection == "":
			r.Reason = e.rejection
		case !e.open && (!e.Approval.RelatesParameters() || len(r.Held) == 0):
			r.Status, r.Reason = Holds, "no VirtualMachine is approved: "+e.objection
		default:
			r.Reason = "no VirtualMachine is approved with the values at which parameters are held: " + e.objection
		}
	}
	for i := range e.values {
		for j, count := range e.values[i] {
			if count.approved > 0 && count.denied == count.approved && e.admitted > 0 {
				p.Never = append(p.Never, e.parameters[i].shown(j))
			}
		}
	}
	return p
}

// unread returns the parameters of which only one value was tried because no policy reads what depends on them.
func (e *enumeration) unread() []string {
	var names []string
	for i := range e.parameters {
		if e.parameters[i].size < e.decider.parameters[i].size {
			names = append(names, e.parameters[i].name)
		}
	}
	return names
}

// held returns the parameters with values that were not tried and that matter to a policy: because it reads what depends on them, or because other values
// are allowed with them.
func (e *enumeration) held(entry *policyset.Entry) []Held {
	var held []Held
	relates := e.Approval != nil && e.Approval.RelatesParameters()
	for i := range e.parameters {
		if p := &e.parameters[i]; p.why != "" && (relates || dependsOn(entry, p)) {
			held = append(held, Held{p.masked(e.base[p.name]), p.why, p.given})
		}
	}
	return held
}

// requestReads returns the properties of the request that a policy reads.
func (e *enumeration) requestReads(entry *policyset.Entry) []string {
	var names []string
	for _, property := range []struct {
		name  string
		at    []string
		match bool
	}{
		{"time", []string{"request", "time"}, false},
		{"user", []string{"request", "userInfo"}, len(entry.Match.Include)+len(entry.Match.Exclude) > 0},
		{"labels of the namespace", []string{"namespace", "labels"}, entry.Match.Namespaces != nil},
		{"annotations of the namespace", []string{"namespace", "annotations"}, false},
	} {
		if property.match || reads(entry, property.at) {
			names = append(names, property.name)
		}
	}
	return names
}

// request returns the creation of a VirtualMachine.
func (q *Question) request(vm *sample.VM) *policyinput.Case {
	c := sample.Case(q.Template, vm, q.Namespace, q.Time)
	c.Request.UserInfo, c.IgnoreSubjects = q.User, !q.hasUser()
	return c
}
