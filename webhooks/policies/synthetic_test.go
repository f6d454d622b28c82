package policies

import (
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/vmstencil/stencil/policies/library"
	policyspec "github.com/vmstencil/stencil/policies/spec"
	"github.com/vmstencil/stencil/rego"
)

// TestThePoliciesOfTheLibraryCanBeTried evaluates each of them on synthetic objects of its kinds.
func TestThePoliciesOfTheLibraryCanBeTried(t *testing.T) {
	policies, err := library.Policies()
	if err != nil || len(policies) == 0 {
		t.Fatal(len(policies), err)
	}
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	s := Sampler{Clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))}
	for _, policy := range policies {
		spec, problems := policyspec.Read(policy)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		compiled, err := compiler.Compile(t.Context(), spec.Definition)
		if err != nil {
			t.Fatal(err)
		}
		entry := spec.Entry(compiled)
		entry.Timeout = time.Minute
		if failed := s.synthetic(t.Context(), &entry, &authenticationv1.UserInfo{Username: "ada"}); failed != nil {
			t.Errorf("policy %s: %s", policy.Name, failed.text(true))
		}
	}
}
