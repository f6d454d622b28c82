package policies

import (
	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
)

// State is the state of one policy.
type State struct {
	// Object is the policy as last observed, with its status and without its tests. It must not be modified.
	Object *v1alpha1.VirtualMachinePolicy
	// Built is the generation that Problems, Tests and Failed refer to; 0 before the first build.
	Built int64
	// Problems are the reasons why it does not compile.
	Problems []rego.Problem
	// Tests is the number of tests, Failed are the failed ones.
	Tests  int
	Failed []suite.Result
	// Active is the active version, nil if there is none.
	Active *Active
	// Broken is the placeholder in the set for a policy of which no version can be evaluated; nil otherwise.
	Broken *policyset.Entry
	// Statistics of the active version, on this replica.
	Statistics policyset.Statistics
	// Quarantine of the active version, on this replica; nil if there is none.
	Quarantine *policyset.Quarantine
}

// Active is an active version.
type Active struct {
	// Generation is the generation of the policy.
	Generation int64
	// Spec is the source of the version, without tests. It must not be modified.
	Spec *v1alpha1.VirtualMachinePolicySpec
	// Entry is the entry in the set.
	Entry policyset.Entry
}

// Current returns the entry of the policy in the set; nil if the policy is not evaluated.
func (s *State) Current() *policyset.Entry {
	if s.Active != nil {
		return &s.Active.Entry
	}
	return s.Broken
}

// States returns the state of each policy, sorted by name.
func (c *Cache) States() []State {
	c.mutex.Lock()
	states := make([]State, 0, len(c.active.policies))
	for _, name := range c.active.names() {
		s := c.active.policies[name].state()
		if q, found := c.quarantines[name]; found && s.Active != nil && s.Active.Entry.Policy.Digest() == q.Digest {
			s.Quarantine = &q
		}
		states = append(states, s)
	}
	c.mutex.Unlock()
	for i := range states {
		if s := &states[i]; s.Active != nil {
			policy := s.Active.Entry.Policy
			s.Statistics = c.evaluator.Statistics(policy.Name(), policy.Digest())
		}
	}
	return states
}

func (r *record) state() State {
	s := State{Object: r.object}
	if r.last != nil {
		s.Built, s.Problems, s.Tests, s.Failed = r.last.generation, r.last.problems, r.last.tests, r.last.failed
	}
	switch {
	case r.active != nil:
		s.Active = &Active{Generation: r.active.generation, Spec: r.active.source, Entry: r.active.entry}
	case r.broken != nil:
		s.Broken = &r.broken.entry
	}
	return s
}
