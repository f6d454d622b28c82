package child

import (
	"time"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/rego/schema"
)

// The messages are JSON values, one after the other.

// settings are the first message to a child.
type settings struct {
	// MemoryBytes is what the child may use in addition to what it uses once it is ready.
	MemoryBytes int64
	// TestTimeout is the timeout of all tests of a policy.
	TestTimeout time.Duration
	// Schemas of the input of policies.
	Schemas *schema.Schemas
}

// Candidate is a version of a policy that is to be compiled and tested.
type Candidate struct {
	Name string
	Spec *v1alpha1.VirtualMachinePolicySpec
	// AnyFields of rego.Definition.
	AnyFields bool
}

// answer is one message of a child: the first when it is ready; for each policy one after it has been compiled, and one after its tests, if it compiles
// and has any.
type answer struct {
	// CPU is the CPU time that the child has used so far.
	CPU time.Duration
	// Problems are the reasons why the policy does not compile.
	Problems []rego.Problem
	// Failed are the failed tests.
	Failed []suite.Result
	// Overdue is true if the tests did not end in time.
	Overdue bool
}
