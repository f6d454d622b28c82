package rego

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestWhatTheFastPathLeavesToOPA(t *testing.T) {
	for _, tc := range []struct {
		name    string
		source  string
		decided bool
	}{
		{"a finding", `deny contains "x" if input.object.metadata.name == "web-1"`, true},
		{"a policy without a finding", `deny contains "x" if input.object.metadata.name == "web-2"`, true},
		{"an error after an expression that is false", `deny contains "x" if { input.object.metadata.name == "web-2"; to_number(input.object.metadata.name) > 1 }`, true},
		{"an error of a function", `deny contains "x" if to_number(input.object.metadata.name) > 1`, false},
		{"an error inside a negation", `deny contains "x" if not to_number(input.object.metadata.name) > 1`, false},
		{"a division by zero", `deny contains "x" if 1 / (count(input.object.metadata.name) - 5) > 1`, false},
		{"a rule with two values", `deny contains "x" if both == 1
both := 1 if input.object.metadata.name
both := 2 if input.object.metadata.name`, false},
		{"a function with two values", `deny contains "x" if both(input.object.metadata.name) == 1
both(x) := 1 if x
both(x) := 2 if x == "web-1"`, false},
		{"an object with two values of a key", `deny contains "x" if {
	made := {"a": n | some n in [input.object.metadata.name, 1]}
	made.a == 1
}`, false},
		{"a warning beside an error", `warn contains "x" if input.object.metadata.name
deny contains "x" if to_number(input.object.metadata.name) > 1`, false},
		{"every over a number", `deny contains "x" if { every n in input.object.metadata.generation { n } }`, true},
		{"a comprehension that OPA evaluates for all values at once", `deny contains "x" if {
	some disk in input.object.spec.template.spec.domain.devices.disks
	name := disk.name
	names := [v | some v in input.object.spec.template.spec.volumes; v.name == name]
	count(names) == 0
}`, false},
		{"a default value", `deny contains "x" if mode == "off"
default mode := "off"
mode := "on" if input.object.spec.running`, true},
		{"more steps than an attempt may take", `deny contains "x" if {
	some a in numbers.range(1, 150)
	some b in numbers.range(1, 150)
	a + b == 0
}`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			policy, err := testCompiler.Compile(t.Context(), Definition{Name: "case", Source: "package p\n" + tc.source})
			if err != nil {
				t.Fatal(err)
			}
			if decided := compared(t, policy, machineDocument(t)); decided != tc.decided {
				t.Errorf("decided %v, want %v", decided, tc.decided)
			}
		})
	}
}

func TestAPolicyWithFailingAttemptsIsLeftToOPAForAWhile(t *testing.T) {
	var a attempts
	for range maxFailed - 1 {
		a.count(false, false)
	}
	if a.pointless() {
		t.Error("attempts end too early")
	}
	a.count(true, false)
	a.count(false, false)
	a.count(false, false)
	for i := range pause {
		if !a.pointless() {
			t.Fatalf("attempts begin again after %d evaluations", i)
		}
	}
	a.pointless()
	if a.pointless() {
		t.Error("attempts never begin again")
	}
	for range maxFailed / limitedCost {
		a.count(false, true)
	}
	if !a.pointless() {
		t.Error("attempts that exceed their limits go on")
	}
}

func TestAnExpiredRequestIsNoFailedAttempt(t *testing.T) {
	policy, err := testCompiler.Compile(t.Context(), Definition{Name: "case", Source: "package p\ndeny contains \"x\" if input.object.metadata.name"})
	if err != nil {
		t.Fatal(err)
	}
	in, err := NewInput(machineDocument(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := policy.Evaluate(ctx, in); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an expired request returned %v", err)
	}
	if failed := policy.program.attempts.failed.Load(); failed != 0 {
		t.Errorf("%d failed attempts", failed)
	}
}

// TestTheErrorOfAHelperIsThatOfEachPolicy guards against results that are shared although their evaluation has failed: OPA continues after an error, and
// caches that the helper is undefined.
func TestTheErrorOfAHelperIsThatOfEachPolicy(t *testing.T) {
	document := machineDocument(t)
	document.Object["spec"].(map[string]any)["instancetype"] = map[string]any{"kind": []any{"no text"}, "name": "u1.small"}
	in, err := NewInput(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second"} {
		policy, err := testCompiler.Compile(t.Context(), Definition{Name: name, Source: "package p\nimport data.lib\ndeny contains \"x\" if lib.instancetype.name == \"u1.large\""})
		if err != nil {
			t.Fatal(err)
		}
		for _, evaluate := range []func(context.Context, *Input) (Result, error){policy.Complete, policy.Evaluate} {
			if _, err := evaluate(t.Context(), in); err == nil || err.Error() != "data.lib/machine.rego:73: lower: operand 1 must be string but got array" {
				t.Errorf("the %s policy returned the error %v", name, err)
			}
		}
	}
}
