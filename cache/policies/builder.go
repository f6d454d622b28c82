package policies

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"runtime/debug"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cache/policies/child"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyspec "github.com/vmstencil/stencil/policies/spec"
	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
)

// Checker compiles and tests policies where they can do no harm; a child.Runner implements it. An error is not a problem of the policy.
type Checker interface {
	Check(context.Context, child.Candidate) (child.Result, error)
}

// builder compiles and tests policies.
type builder struct {
	// checker checks policies before compile. If it is nil, check runs the tests.
	checker Checker
	compile func(context.Context, rego.Definition) (policyset.Policy, error)
	check   func(context.Context, policyset.Policy, []suite.Case) []suite.Result
	// schemas returns the digest of the schemas with which compile works.
	schemas func() [sha256.Size]byte
	// limit is the timeout to compile a policy, and again to run its tests.
	limit time.Duration
	log   logr.Logger
}

// newBuilder returns a builder that uses the engine.
func newBuilder(compiler *rego.Compiler, checker Checker, limit time.Duration, log logr.Logger) *builder {
	return &builder{
		checker: checker,
		compile: func(ctx context.Context, d rego.Definition) (policyset.Policy, error) {
			policy, err := compiler.Compile(ctx, d)
			if err != nil {
				return nil, err
			}
			return policy, nil
		},
		check: func(ctx context.Context, policy policyset.Policy, cases []suite.Case) []suite.Result {
			return suite.Check(ctx, policy.(*rego.Policy), cases)
		},
		schemas: func() [sha256.Size]byte { return compiler.Schemas().Digest() },
		limit:   limit,
		log:     log,
	}
}

// build is the result of building one version of a policy.
type build struct {
	generation int64
	// spec is the parsed policy.
	spec *policyspec.Spec
	// problems are the reasons why it does not compile.
	problems []rego.Problem
	// overrun is true if the compilation took too long, or was cancelled. A retry may succeed.
	overrun bool
	// unavailable is why the policy could not be checked, for a reason that is not its own. Then there is no result.
	unavailable error
	// tests is the number of tests, failed are the failed ones.
	tests  int
	failed []suite.Result
	// good is the version, if it compiles and its tests pass.
	good *version
	// lastGood is an earlier version, restored from the status; nil if not needed.
	lastGood *version
	// compiling is how long the compilation took; 0 if none was necessary.
	compiling time.Duration
	// schemas is the digest of those that were in use when the build began.
	schemas [sha256.Size]byte
	// anyFields is true if the version compiles only as if objects could have any field: see builder.compiledAgain.
	anyFields bool
}

// mistyped reports whether a problem may be gone with other schemas.
func (b *build) mistyped() bool {
	return slices.ContainsFunc(b.problems, func(p rego.Problem) bool { return p.Code == rego.CodeType })
}

// outdated reports whether a build may have another result because the schemas have changed. It is false for no build.
func (b *builder) outdated(last *build) bool {
	return last != nil && last.mistyped() && last.schemas != b.schemas()
}

// build compiles a policy and runs its tests. The module of the active version is reused if it is equal. If there is no
// active version and the policy is broken, build restores its last good version from its status.
func (b *builder) build(ctx context.Context, object *v1alpha1.VirtualMachinePolicy, active *version) *build {
	spec, problems := policyspec.Read(object)
	result := &build{generation: object.Generation, spec: spec, tests: len(spec.Cases), schemas: b.schemas()}
	if len(problems) > 0 {
		result.problems = fromFields(problems)
	} else {
		b.try(ctx, object, active, result)
	}
	spec.Cases = nil
	if result.good == nil && active == nil && object.Status.LastGood != nil && result.unavailable == nil {
		result.lastGood, result.unavailable = b.restore(ctx, object)
	}
	return result
}

func (b *builder) try(ctx context.Context, object *v1alpha1.VirtualMachinePolicy, active *version, result *build) {
	made := &version{generation: object.Generation, source: withoutTests(&object.Spec)}
	var err error
	if made.fingerprint, made.module, err = fingerprints(made.source); err != nil {
		result.problems = []rego.Problem{{Code: rego.CodeCompile, Message: err.Error()}}
		return
	}
	reused := active != nil && active.module == made.module
	// A version stays enforced when the schemas lose a field, because another KubeVirt is installed and the manager has been restarted: if it has
	// mistakes in types only, it compiles as if objects could have any field.
	wasGood := reused || object.Status.ActiveGeneration == object.Generation
	start := time.Now()
	if b.checker != nil && (!reused || len(result.spec.Cases) > 0) && !b.checked(ctx, object, wasGood, result) {
		result.compiling = time.Since(start)
		return
	}
	start = time.Now()
	var policy policyset.Policy
	if reused {
		policy = active.entry.Policy
	} else {
		policy = b.compiled(ctx, wasGood, result)
		if result.compiling = time.Since(start); policy == nil {
			return
		}
	}
	if b.checker == nil {
		if result.failed = b.tested(ctx, policy, result.spec.Cases); len(result.failed) > 0 {
			return
		}
	}
	made.entry = result.spec.Entry(policy)
	result.good = made
}

// checked reports whether the checker has compiled and tested a version successfully.
func (b *builder) checked(ctx context.Context, object *v1alpha1.VirtualMachinePolicy, wasGood bool, result *build) bool {
	candidate := child.Candidate{Name: object.Name, Spec: &object.Spec}
	found, err := b.checker.Check(ctx, candidate)
	if err == nil && wasGood && onlyMistyped(found.Problems) {
		candidate.AnyFields = true
		var again child.Result
		if again, err = b.checker.Check(ctx, candidate); err == nil && len(again.Problems) == 0 {
			found = again
		}
	}
	if err != nil {
		result.unavailable = err
		return false
	}
	result.problems, result.failed, result.overrun = found.Problems, found.Failed, found.Overrun
	return len(found.Problems)+len(found.Failed) == 0
}

// compiled compiles a version. It returns nil if the version has problems.
func (b *builder) compiled(ctx context.Context, wasGood bool, result *build) policyset.Policy {
	policy, err := b.compileOnce(ctx, result.spec.Definition)
	if err == nil {
		return policy
	}
	if result.problems, result.overrun = problemsOf(err); !wasGood || !onlyMistyped(result.problems) {
		return nil
	}
	definition := result.spec.Definition
	definition.AnyFields = true
	if policy, err = b.compileOnce(ctx, definition); err != nil {
		return nil
	}
	result.problems, result.overrun, result.anyFields = nil, false, true
	return policy
}

// onlyMistyped reports whether there are problems, and all are mistakes in types.
func onlyMistyped(problems []rego.Problem) bool {
	return len(problems) > 0 && !slices.ContainsFunc(problems, func(p rego.Problem) bool { return p.Code != rego.CodeType })
}

// restore compiles the version in status.lastGood. It returns nil if that is not possible. It does not run the tests: they
// passed when the version was new. The error is that of the checker.
func (b *builder) restore(ctx context.Context, object *v1alpha1.VirtualMachinePolicy) (*version, error) {
	stored := object.Status.LastGood
	earlier := &v1alpha1.VirtualMachinePolicy{ObjectMeta: object.ObjectMeta}
	earlier.Generation = stored.Generation
	if readable := stored.Spec != nil && json.Unmarshal(stored.Spec.Raw, &earlier.Spec) == nil; !readable {
		return nil, nil
	}
	earlier.Spec.Tests = nil
	earlier.Status.ActiveGeneration = stored.Generation
	built := b.build(ctx, earlier, nil)
	return built.good, built.unavailable
}

// compileOnce compiles with a timeout. The compiler cannot be cancelled everywhere: it may continue in its goroutine after the
// timeout.
func (b *builder) compileOnce(ctx context.Context, d rego.Definition) (policyset.Policy, error) {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	type result struct {
		policy policyset.Policy
		err    error
	}
	done := make(chan result, 1)
	go func() {
		var o result
		defer func() {
			if r := recover(); r != nil {
				b.log.Error(nil, "the compiler panicked; please report this", "policy", d.Name, "panic", r, "stack", string(debug.Stack()))
				o = result{nil, errors.New("the compiler failed on this policy (panic)")}
			}
			done <- o
		}()
		o.policy, o.err = b.compile(ctx, d)
	}()
	select {
	case o := <-done:
		return o.policy, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// tested returns the failed tests.
func (b *builder) tested(ctx context.Context, policy policyset.Policy, cases []suite.Case) []suite.Result {
	if len(cases) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	done := make(chan []suite.Result, 1)
	go func() {
		var results []suite.Result
		defer func() {
			if r := recover(); r != nil {
				b.log.Error(nil, "the engine panicked; please report this", "policy", policy.Name(), "panic", r, "stack", string(debug.Stack()))
				results = []suite.Result{{Name: cases[0].Name, Failure: "the engine failed on the tests (panic)"}}
			}
			done <- results
		}()
		results = b.check(ctx, policy, cases)
	}()
	var results []suite.Result
	select {
	case results = <-done:
	case <-ctx.Done():
		return []suite.Result{{Name: cases[0].Name, Failure: "the tests did not end within " + b.limit.String()}}
	}
	return suite.Report{Results: results}.Failed()
}

// problemsOf returns the problems in an error of the compiler.
func problemsOf(err error) (problems []rego.Problem, overrun bool) {
	var compile *rego.CompileError
	switch {
	case errors.As(err, &compile) && len(compile.Problems) > 0:
		return compile.Problems, false
	case errors.Is(err, context.DeadlineExceeded):
		return []rego.Problem{{Code: rego.CodeLimit, Message: "it takes too long to compile"}}, true
	default:
		return []rego.Problem{{Code: rego.CodeCompile, Message: err.Error()}}, errors.Is(err, context.Canceled)
	}
}

func fromFields(list field.ErrorList) []rego.Problem {
	problems := make([]rego.Problem, len(list))
	for i, each := range list {
		problems[i] = rego.Problem{Code: rego.CodeParameters, Field: each.Field, Message: each.ErrorBody()}
	}
	return problems
}
