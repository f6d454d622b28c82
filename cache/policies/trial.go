package policies

import (
	"context"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
)

// maximumTrials is how many policies are tried at a time.
const maximumTrials = 2

// Trial is what would become of a policy if it were stored.
type Trial struct {
	// Problems are why it does not compile.
	Problems []rego.Problem
	// Tests is how many tests it has, Failed are those that fail.
	Tests  int
	Failed []suite.Result
}

// Try compiles a policy that is not stored yet, and runs its tests. The error is
// ctx's.
func (c *Cache) Try(ctx context.Context, object *v1alpha1.VirtualMachinePolicy) (Trial, error) {
	select {
	case c.trials <- struct{}{}:
	case <-ctx.Done():
		return Trial{}, ctx.Err()
	}
	defer func() { <-c.trials }()
	// What the status says about earlier versions is of no interest here.
	alone := *object
	alone.Status = v1alpha1.VirtualMachinePolicyStatus{}
	built := c.builder.build(ctx, &alone, nil)
	if err := ctx.Err(); err != nil {
		return Trial{}, err
	}
	return Trial{Problems: built.problems, Tests: built.tests, Failed: built.failed}, nil
}
