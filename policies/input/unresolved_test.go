package input_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
)

type policy string

func (p policy) Name() string          { return string(p) }
func (policy) Digest() string          { return "sha256:1" }
func (policy) Metadata() rego.Metadata { return rego.Metadata{Severity: rego.SeverityHigh} }
func (policy) Evaluate(context.Context, *rego.Input) (rego.Result, error) {
	return rego.Result{}, nil
}

func TestAddUnresolved(t *testing.T) {
	entries := []policyset.Entry{
		{Policy: policy("audit"), Enforcement: policyset.EnforcementAudit},
		{Policy: policy("deny")},
		{Policy: policy("lenient"), FailureMode: policyset.FailureModeAllow},
		{Policy: policy("warn"), Enforcement: policyset.EnforcementWarn, FailureMode: policyset.FailureModeDeny},
	}
	failure := func(name string) []policyset.Violation {
		return []policyset.Violation{{
			Policy: name, Severity: rego.SeverityHigh, Rule: policyset.RuleDeny, Failure: true,
			Finding: rego.Finding{Message: `could not be evaluated: Not found: "VirtualMachineClusterInstancetype huge": it does not exist`, Field: "spec.instancetype"},
		}}
	}
	var got policyset.Decision
	policyinput.AddUnresolved(&got, entries, nil)
	if diff := cmp.Diff(policyset.Decision{}, got); diff != "" {
		t.Error(diff)
	}
	policyinput.AddUnresolved(&got, entries, field.ErrorList{
		{Type: field.ErrorTypeNotFound, Field: "spec.instancetype", BadValue: "VirtualMachineClusterInstancetype huge", Detail: "it does not exist"},
	})
	want := policyset.Decision{Denials: failure("deny"), Warnings: failure("warn"), Audited: failure("audit")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
