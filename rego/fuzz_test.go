package rego

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/vmstencil/stencil/internal/fixture/hostile"
)

// seeds are meaningful sources, valid and invalid.
func seeds(f *testing.F) {
	for _, tc := range badPolicies {
		if len(tc.source) < 4<<10 {
			f.Add(tc.source)
		}
	}
	for _, source := range goodPolicies {
		f.Add(source)
	}
	for _, source := range hostile.Policies {
		if len(source) < 4<<10 {
			f.Add(source)
		}
	}
	f.Add("package p\n\nimport data.lib\n\ndeny contains {\"msg\": m, \"field\": f} if {\n\tsome i, d in input.object.spec.template.spec.domain.devices.disks\n\tnot d.disk.bus in {\"virtio\", \"scsi\"}\n\tm := sprintf(\"%s\", [d.name])\n\tf := sprintf(\"disks[%d]\", [i])\n}\n")
	f.Add("package p\n\nf(x) := y if {\n\t[x, y] = [1, 2]\n} else := {\"a\": [z | some z in x]} if every k, v in x { k != v }\n\nwarn contains msg if {\n\tsome k, v in f(input.object)\n\tmsg := concat(\"\", [k, v])\n}\n")
}

// FuzzCompile checks that no source makes the compiler panic or take long, and that problems have positions in the source.
func FuzzCompile(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, source string) {
		begin := time.Now()
		policy, err := testCompiler.compile(Definition{Name: "fuzz", Source: source, Parameters: map[string]any{"max": 1}})
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("compiling took %v", took)
		}
		if err == nil {
			if policy.Digest() == "" || policy.Metadata().Severity == "" {
				t.Error("the policy is not complete")
			}
			return
		}
		var rejected *CompileError
		if !errors.As(err, &rejected) || len(rejected.Problems) == 0 {
			t.Fatalf("the error is %v", err)
		}
		rows := len(newSource(source).lines)
		for _, problem := range rejected.Problems {
			if problem.Row < 0 || problem.Row > rows || problem.Row > 0 && problem.Column < 1 || problem.Message == "" || problem.Code == "" {
				t.Errorf("a problem at %d:%d of %d rows: %+v", problem.Row, problem.Column, rows, problem)
			}
			if len(problem.Message) > MaxMessageBytes {
				t.Errorf("a message of %d bytes", len(problem.Message))
			}
		}
	})
}

// FuzzEvaluate evaluates whatever compiles, with whatever object.
func FuzzEvaluate(f *testing.F) {
	for _, source := range goodPolicies {
		f.Add(source, `{"metadata": {"name": "x"}}`)
	}
	for _, source := range hostile.Policies {
		if len(source) < 4<<10 {
			f.Add(source, `{"metadata": {"name": "x", "labels": {"a": "b"}}, "spec": {"template": {"spec": {"volumes": [{"name": "a"}]}}}}`)
		}
	}
	f.Fuzz(func(t *testing.T, source, text string) {
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil {
			return
		}
		policy, err := testCompiler.compile(Definition{Name: "fuzz", Source: source, Parameters: map[string]any{"max": 1}})
		if err != nil {
			return
		}
		in, err := NewInput(Document{Object: object})
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		begin := time.Now()
		result, err := policy.Evaluate(ctx, in)
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("evaluating took %v", took)
		}
		var failed *EvaluationError
		if err != nil && !errors.As(err, &failed) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		if len(result.Deny)+len(result.Warn) > MaxMessages {
			t.Errorf("%d findings", len(result.Deny)+len(result.Warn))
		}
		for _, finding := range append(result.Deny, result.Warn...) {
			if len(finding.Message) > MaxMessageBytes || utf8.ValidString(source) && utf8.ValidString(text) && !utf8.ValidString(finding.Message) {
				t.Errorf("the message %q", finding.Message)
			}
		}
		if err == nil {
			again, err := policy.Evaluate(context.Background(), in)
			if err == nil && len(again.Deny) != len(result.Deny) {
				t.Errorf("first %d denials, then %d", len(result.Deny), len(again.Deny))
			}
		}
	})
}
