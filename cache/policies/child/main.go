package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policyspec "github.com/vmstencil/stencil/policies/spec"
	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
)

// Argument is the argument with which a Runner starts its own program. The program calls Main before it does anything else.
const Argument = "compile-policies"

// Main is the child. It returns the exit code when in ends, also while a policy is compiled: then the parent has ended, or does not wait any more.
func Main(in io.Reader, out, problems io.Writer) int {
	if err := serve(in, out); err != nil {
		fmt.Fprintln(problems, err)
		return 1
	}
	return 0
}

func serve(in io.Reader, out io.Writer) error {
	messages, answers := json.NewDecoder(in), json.NewEncoder(out)
	var s settings
	if err := messages.Decode(&s); err != nil {
		return fmt.Errorf("reading the settings: %w", err)
	}
	compiler, err := rego.NewCompiler()
	if err != nil {
		return err
	}
	if err := compiler.UseSchemas(s.Schemas); err != nil {
		return err
	}
	if err := restrict(s.MemoryBytes); err != nil {
		return err
	}
	if err := answers.Encode(answer{CPU: cpuTime()}); err != nil {
		return err
	}
	next, failed := make(chan Candidate), make(chan error, 1)
	w := &worker{compiler: compiler, timeout: s.TestTimeout, answers: answers}
	go func() {
		for c := range next {
			if err := w.work(c); err != nil {
				failed <- err
				return
			}
		}
	}()
	for {
		var c Candidate
		if err := messages.Decode(&c); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a policy: %w", err)
		}
		select {
		case next <- c:
		case err := <-failed:
			return fmt.Errorf("answering: %w", err)
		}
	}
}

// maxRecent is the number of policies that a worker retains: those that differ in their parameters only are compiled once.
const maxRecent = 64

// worker works on one policy after the other.
type worker struct {
	compiler *rego.Compiler
	timeout  time.Duration
	answers  *json.Encoder
	recent   [maxRecent]*rego.Policy
	compiled int
}

// work compiles and tests a policy.
func (w *worker) work(c Candidate) error {
	object := &v1alpha1.VirtualMachinePolicy{Spec: *c.Spec}
	object.Name = c.Name
	spec, _ := policyspec.Read(object) // The parent has checked the fields.
	spec.Definition.AnyFields = c.AnyFields
	policy, err := w.compiler.Compile(context.Background(), spec.Definition)
	compiled := answer{CPU: cpuTime()}
	if rejected := (*rego.CompileError)(nil); errors.As(err, &rejected) {
		compiled.Problems = rejected.Problems
	} else if err != nil {
		compiled.Problems = []rego.Problem{{Code: rego.CodeCompile, Message: err.Error()}}
	}
	if err := w.answers.Encode(compiled); err != nil || policy == nil {
		return err
	}
	w.recent[w.compiled%maxRecent] = policy
	w.compiled++
	if len(spec.Cases) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.timeout)
	defer cancel()
	results := suite.Check(ctx, policy, spec.Cases)
	// The timer of the context may be later than the clock, by which evaluations end.
	deadline, _ := ctx.Deadline()
	overdue := !time.Now().Before(deadline)
	if overdue {
		results = []suite.Result{{Name: spec.Cases[0].Name, Failure: overdueTests(w.timeout)}}
	}
	return w.answers.Encode(answer{CPU: cpuTime(), Failed: suite.Report{Results: results}.Failed(), Overdue: overdue})
}

func overdueTests(timeout time.Duration) string {
	return "the tests did not end within " + timeout.String()
}
