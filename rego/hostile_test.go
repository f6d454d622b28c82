package rego

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/vmstencil/stencil/internal/fixture/hostile"
)

// TestHostilePoliciesAreStopped checks the bounds of compilation and evaluation. Unbounded work takes minutes or more, so that the limits leave room
// for a busy host.
func TestHostilePoliciesAreStopped(t *testing.T) {
	in := mustInput(t, vmDocument(t))
	for name, text := range hostile.Policies {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begin := time.Now()
			policy, err := testCompiler.compile(Definition{Name: "hostile", Source: text})
			compiled := time.Since(begin)
			if compiled > 30*time.Second {
				t.Errorf("compiling took %v", compiled)
			}
			if err != nil {
				var problems *CompileError
				if !errors.As(err, &problems) {
					t.Fatal(err)
				}
				t.Logf("%v: not compiled: %v", compiled, shorten(err.Error(), 200))
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			begin = time.Now()
			result, err := policy.Evaluate(ctx, in)
			took := time.Since(begin)
			runtime.ReadMemStats(&after)
			t.Logf("compiled in %v, evaluated in %v, %d MiB allocated: %d findings, %v", compiled, took, (after.TotalAlloc-before.TotalAlloc)>>20, len(result.Deny), err)
			if took > 20*time.Second {
				t.Errorf("evaluating took %v", took)
			}
			var failed *EvaluationError
			if err != nil && !errors.As(err, &failed) && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
