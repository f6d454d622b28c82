package policy

import (
	"context"
	"fmt"
	"time"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// policyTimeout is the timeout of one policy. A policy that exceeds the timeout of a cluster is
// reported, but a busy host must not change the result.
const policyTimeout = 10 * time.Second

// engine holds compiled policies.
type engine struct {
	set      *policyset.Set
	compiled map[string]*rego.Policy
	limits   map[string]time.Duration
	// exceptions are those from the policies; nil has none.
	exceptions *policyset.Exceptions
	evaluator  *policyset.Evaluator
}

// newEngine compiles policies, and gives them the values of the cluster that they read. It prints their problems.
func newEngine(ctx context.Context, streams cli.Streams, policies []*source.Policy, given givenData) (*engine, error) {
	compiler, err := rego.NewCompiler()
	if err != nil {
		return nil, cli.Internal(err)
	}
	e := &engine{
		compiled: map[string]*rego.Policy{}, limits: map[string]time.Duration{},
		evaluator: policyset.NewEvaluator(policyset.Options{Deadline: time.Hour, Quarantine: policyset.QuarantineOptions{Strikes: 1 << 30}}),
	}
	var problems []problem
	var entries []policyset.Entry
	for _, policy := range policies {
		problems = append(problems, manifestProblems(policy.File, policy.Name(), policy.Problems)...)
		if e.compiled[policy.Name()] != nil {
			return nil, cli.Usage(fmt.Errorf("%s: there is another policy called %s", policy.File, policy.Name()))
		}
		compiled, err := compile(ctx, compiler, policy.Spec.Definition, compileTimeout)
		if err != nil {
			found := problemsOf(policy.File, policy.Name(), policy, err)
			if len(found) == 0 {
				return nil, cli.Internal(fmt.Errorf("compiling policy %s: %w", policy.Name(), err))
			}
			problems = append(problems, found...)
			continue
		}
		compiled = compiled.WithData(given.bind(compiled.References()))
		e.compiled[policy.Name()], e.limits[policy.Name()] = compiled, policy.Spec.Timeout
		entry := policy.Spec.Entry(compiled)
		entry.Timeout = policyTimeout
		entries = append(entries, entry)
	}
	if len(problems) > 0 {
		printProblems(streams.Err, streams, problems)
		return nil, cli.Usage(fmt.Errorf("%s in the policies", cli.Count(len(problems), "problem", "problems")))
	}
	e.set = policyset.NewSet(entries)
	return e, nil
}

// evaluate evaluates the policies for a case.
func (e *engine) evaluate(ctx context.Context, c *policyinput.Case, resolver sizing.Resolver) (result, error) {
	entries := e.set.Matching(c.Query())
	v := result{Kind: c.Request.Kind, Namespace: c.Request.Namespace, Name: c.Request.Name, Operation: c.Request.Operation, Allowed: true}
	selected := map[string]bool{}
	for i := range entries {
		selected[entries[i].Policy.Name()] = true
	}
	for _, entry := range e.set.Entries() {
		if !selected[entry.Policy.Name()] {
			v.NotAsked = append(v.NotAsked, entry.Policy.Name())
		}
	}
	if len(entries) == 0 {
		return v, nil
	}
	unresolved := c.Resolve(ctx, resolver)
	input, err := e.set.Input(c.Document())
	if err != nil {
		return v, cli.Usage(fmt.Errorf("%s cannot be shown to policies: %w", v.object(), err))
	}
	decision := e.evaluator.Evaluate(ctx, entries, input)
	policyinput.AddUnresolved(&decision, entries, unresolved)
	c.Except(&decision, e.exceptions, exceptionTime(c.Request.Time))
	v.take(decision)
	for i := range v.Policies {
		selected := &v.Policies[i]
		if limit := e.limits[selected.Name]; time.Duration(selected.Microseconds)*time.Microsecond > limit {
			v.Notes = append(v.Notes, fmt.Sprintf("policy %s took %d ms, a cluster ends it after %d ms", selected.Name, selected.Microseconds/1000, limit.Milliseconds()))
		}
	}
	return v, nil
}
