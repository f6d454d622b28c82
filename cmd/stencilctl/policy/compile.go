package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vmstencil/stencil/rego"
)

// compileTimeout is how long a policy may compile. It is longer than in a cluster, because a laptop can be slower.
const compileTimeout = 30 * time.Second

// compile compiles a policy. What takes longer than the timeout is a problem of the policy: nothing can interrupt it, but the process ends soon.
func compile(ctx context.Context, compiler *rego.Compiler, definition rego.Definition, timeout time.Duration) (*rego.Policy, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	compiled, err := compiler.Compile(limited, definition)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, &rego.CompileError{Problems: []rego.Problem{{
			Code: rego.CodeLimit, Message: fmt.Sprintf("it takes too long to compile: more than %s; a cluster denies it", timeout),
		}}}
	}
	return compiled, err
}
