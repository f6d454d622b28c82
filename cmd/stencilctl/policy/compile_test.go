package policy

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vmstencil/stencil/internal/fixture/hostile"
	"github.com/vmstencil/stencil/rego"
)

func TestCompilingHasATimeout(t *testing.T) {
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	long := rego.Definition{Name: "long", Source: hostile.Processes["a rule of 1500 calls"]}
	_, err = compile(t.Context(), compiler, long, time.Millisecond)
	var problems *rego.CompileError
	if !errors.As(err, &problems) || err.Error() != "it takes too long to compile: more than 1ms; a cluster denies it" || problems.Problems[0].Code != rego.CodeLimit {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := compile(ctx, compiler, long, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("a command that is interrupted: %v", err)
	}
	if _, err := compile(t.Context(), compiler, rego.Definition{Name: "good", Source: "package x\ndeny contains \"no\" if true\n"}, time.Minute); err != nil {
		t.Error(err)
	}
}
