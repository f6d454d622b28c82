package policies

import (
	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
)

// State is what is known of one policy.
type State struct {
	// Object is the policy as it was last seen, with its status and without its tests.
	// It must not be modified.
	Object *v1alpha1.VirtualMachinePolicy
	// Built is the generation that the next three fields are about; 0 before the first
	// is built.
	Built int64
	// Problems are why it does not compile.
	Problems []rego.Problem
	// Tests is how many tests it has, Failed are those that fail.
	Tests  int
	Failed []suite.Result
	// InForce is the version in force, nil when none is.
	InForce *InForce
	// Broken is what stands in the set for a policy of which no version can be
	// evaluated; nil otherwise.
	Broken *policyset.Entry
	// Statistics are those of the version in force, on this replica.
	Statistics policyset.Statistics
	// Quarantine is that of the version in force, on this replica; nil when there is
	// none.
	Quarantine *policyset.Quarantine
}

// InForce is a version that is in force.
type InForce struct {
	// Generation is that of the policy.
	Generation int64
	// Spec is what it is made of, without tests. It must not be modified.
	Spec *v1alpha1.VirtualMachinePolicySpec
	// Entry is what the set holds.
	Entry policyset.Entry
}

// Current is what the set holds of the policy; nil when nothing is judged by it.
func (s *State) Current() *policyset.Entry {
	if s.InForce != nil {
		return &s.InForce.Entry
	}
	return s.Broken
}

// States returns what is known of each policy, by name.
func (c *Cache) States() []State {
	c.mutex.Lock()
	states := make([]State, 0, len(c.ledger.policies))
	for _, name := range c.ledger.names() {
		s := c.ledger.policies[name].state()
		if q, found := c.quarantines[name]; found && s.InForce != nil && s.InForce.Entry.Policy.Digest() == q.Digest {
			s.Quarantine = &q
		}
		states = append(states, s)
	}
	c.mutex.Unlock()
	for i := range states {
		if s := &states[i]; s.InForce != nil {
			policy := s.InForce.Entry.Policy
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
	case r.inForce != nil:
		s.InForce = &InForce{Generation: r.inForce.generation, Spec: r.inForce.source, Entry: r.inForce.entry}
	case r.broken != nil:
		s.Broken = &r.broken.entry
	}
	return s
}
