package policies

import (
	"testing"
	"time"

	"github.com/vmstencil/stencil/rego"
)

// TestOPAFindsTheSame checks that both engines do the same work, and compares their allocations, which needs no quiet machine.
func TestOPAFindsTheSame(t *testing.T) {
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	policies, err := readLibrary()
	if err != nil {
		t.Fatal(err)
	}
	vm, err := readVM()
	if err != nil {
		t.Fatal(err)
	}
	cost, findings, err := request(t.Context(), 100*time.Millisecond, compiler, policies, vm, 100)
	if err != nil {
		t.Fatal(err)
	}
	bare, err := bareRequest(t.Context(), 100*time.Millisecond, policies, vm, 100, findings)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d findings: %+v, OPA alone %+v", findings, cost, bare)
	if 3*cost.Allocations > bare.Allocations {
		t.Errorf("%d allocations, want at most a third of OPA's %d", cost.Allocations, bare.Allocations)
	}
}
