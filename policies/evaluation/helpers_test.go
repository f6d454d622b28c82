package evaluation_test

import (
	"context"
	"errors"
	"testing"
	"time"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
)

// fake is a policy written in Go.
type fake struct {
	name, digest string
	evaluate     func(context.Context) (rego.Result, error)
}

func (f *fake) Name() string { return f.name }

func (f *fake) Digest() string { return f.digest }

func (f *fake) Metadata() rego.Metadata {
	return rego.Metadata{Title: "Title of " + f.name, Severity: rego.SeverityHigh}
}

func (f *fake) Evaluate(ctx context.Context, _ *rego.Input) (rego.Result, error) {
	return f.evaluate(ctx)
}

func policy(name string, evaluate func(context.Context) (rego.Result, error)) *fake {
	return &fake{name: name, digest: "sha256:" + name, evaluate: evaluate}
}

func allowing(name string) *fake { return finding(name, rego.Result{}) }

func finding(name string, result rego.Result) *fake {
	return policy(name, func(context.Context) (rego.Result, error) { return result, nil })
}

func denying(name string, messages ...string) *fake {
	return finding(name, rego.Result{Deny: findings(messages...)})
}

func findings(messages ...string) []rego.Finding {
	var found []rego.Finding
	for _, message := range messages {
		found = append(found, rego.Finding{Message: message})
	}
	return found
}

func failing(name string) *fake {
	return policy(name, func(context.Context) (rego.Result, error) {
		return rego.Result{}, errors.New("division by zero")
	})
}

// slow runs until it is cancelled.
func slow(name string) *fake {
	return policy(name, func(ctx context.Context) (rego.Result, error) {
		<-ctx.Done()
		return rego.Result{}, ctx.Err()
	})
}

// stuck runs until release is closed, regardless of its context.
func stuck(name string, release <-chan struct{}) *fake {
	return policy(name, func(context.Context) (rego.Result, error) {
		<-release
		return rego.Result{}, nil
	})
}

func panicking(name string) *fake {
	return policy(name, func(context.Context) (rego.Result, error) { panic("poison") })
}

// noCPUTime simulates an operating system that does not report CPU time: the fakes wait
// and use none.
func noCPUTime() (time.Duration, bool) { return 0, false }

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatal("never: " + what)
		case <-tick.C:
		}
	}
}

func resultsOf(d policyset.Decision) map[string]policyset.Result {
	found := map[string]policyset.Result{}
	for _, evaluation := range d.Evaluations {
		found[evaluation.Policy] = evaluation.Result
	}
	return found
}

func texts(violations []policyset.Violation) []string {
	var texts []string
	for _, violation := range violations {
		texts = append(texts, violation.Policy+": "+violation.Message)
	}
	return texts
}
