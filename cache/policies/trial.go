package policies

import (
	"context"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
)

// maximumTrials is the maximum number of concurrent trials.
const maximumTrials = 2

// Trial is the result of building a policy that is not stored.
type Trial struct {
	// Problems are the reasons why it does not compile.
	Problems []rego.Problem
	// Tests is the number of tests, Failed are the failed ones.
	Tests  int
	Failed []suite.Result
	// Entry is the version as it would be evaluated; nil if it does not compile or its tests fail.
	Entry *policyset.Entry
	// Active is the active version of the stored policy with the same UID; nil if there is none.
	Active *policyset.Entry
}

// Try compiles a policy that is not stored yet, and runs its tests. The error is that of ctx, or of the Checker.
func (c *Cache) Try(ctx context.Context, object *v1alpha1.VirtualMachinePolicy) (Trial, error) {
	select {
	case c.trials <- struct{}{}:
	case <-ctx.Done():
		return Trial{}, ctx.Err()
	}
	defer func() { <-c.trials }()
	// Earlier versions in the status are irrelevant here.
	alone := *object
	alone.Status = v1alpha1.VirtualMachinePolicyStatus{}
	// A change of anything but the module and its parameters needs no compilation: it succeeds also if the schemas have lost fields meanwhile.
	active := c.activeVersion(object)
	built := c.builder.build(ctx, &alone, active)
	if built.unavailable != nil {
		return Trial{}, built.unavailable
	}
	c.active.binder.await(ctx, built.good)
	if err := ctx.Err(); err != nil {
		return Trial{}, err
	}
	trial := Trial{Problems: built.problems, Tests: built.tests, Failed: built.failed}
	if built.good != nil {
		trial.Entry = &c.active.binder.bound(built.good).entry
	}
	if active != nil {
		trial.Active = &active.entry
	}
	return trial, nil
}

// activeVersion returns the active version of the stored policy with the same UID; nil if there is none.
func (c *Cache) activeVersion(object *v1alpha1.VirtualMachinePolicy) *version {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if stored := c.active.policies[object.Name]; stored != nil && stored.object.UID == object.UID {
		return stored.active
	}
	return nil
}
