package rego

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/vmstencil/stencil/rego/internal/sandbox"
	"github.com/vmstencil/stencil/rego/lib"
	"github.com/vmstencil/stencil/rego/schema"
)

// Compiler compiles policies. It is safe for concurrent use.
type Compiler struct {
	sandbox  *sandbox.Sandbox
	helpers  helpers
	patterns *sandbox.Patterns
	programs programs

	environments atomic.Pointer[environments]
}

// environments are the type environments of one state of the schemas.
type environments struct {
	schemas *schema.Schemas

	mu sync.Mutex
	// byKinds are those for the kinds of input.object.
	byKinds map[string]*ast.TypeEnv
}

// NewCompiler makes the state that all policies share. A process needs one.
func NewCompiler() (*Compiler, error) {
	sources, err := lib.Sources()
	if err != nil {
		return nil, err
	}
	c := &Compiler{sandbox: sandbox.New(), patterns: &sandbox.Patterns{}}
	if c.helpers, err = newHelpers(sources, c.sandbox.Capabilities); err != nil {
		return nil, err
	}
	embedded, err := schema.Embedded()
	if err != nil {
		return nil, err
	}
	if err := c.UseSchemas(embedded); err != nil {
		return nil, err
	}
	return c, nil
}

// Schemas returns the schemas of the input of policies that are compiled from now on. At first they are those of the release.
func (c *Compiler) Schemas() *schema.Schemas { return c.environments.Load().schemas }

// UseSchemas replaces the schemas of the input of policies that are compiled from now on. After an error it uses those that it had.
func (c *Compiler) UseSchemas(schemas *schema.Schemas) (err error) {
	next := &environments{schemas: schemas, byKinds: map[string]*ast.TypeEnv{}}
	defer func() {
		// OPA must not panic, but schemas come from the cluster.
		if r := recover(); r != nil {
			err = fmt.Errorf("the compiler failed on the schemas: %v", r)
		}
	}()
	if _, err := next.typesFor(c.sandbox.Capabilities, []string{KindVirtualMachine}, false); err != nil {
		return err
	}
	c.environments.Store(next)
	return nil
}

// typesFor returns the environment in which input has the types of the schemas, or objects any type. All policies share it; the type checker adds their
// own types on top of it.
func (e *environments) typesFor(capabilities *ast.Capabilities, kinds []string, anyFields bool) (*ast.TypeEnv, error) {
	key := strings.Join(kinds, " ")
	if anyFields {
		key = "any"
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if env, ok := e.byKinds[key]; ok {
		return env, nil
	}
	input, err := e.schemas.Input(kinds, anyFields)
	if err != nil {
		return nil, err
	}
	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, input)
	compiler := ast.NewCompiler().WithCapabilities(capabilities).WithSchemas(schemas)
	compiler.Compile(nil)
	if compiler.Failed() {
		return nil, fmt.Errorf("the schemas of %s: %w", key, compiler.Errors)
	}
	refine(compiler.TypeEnv.GetByRef(ast.InputRootRef))
	e.byKinds[key] = compiler.TypeEnv
	return compiler.TypeEnv, nil
}

// refine adds to the types of input what OPA's schemas cannot express: optional parts are null, so that input.oldObject == null is valid, and the
// values of parameters, labels and annotations are strings.
func refine(input types.Type) {
	record, ok := input.(*types.Object)
	if !ok {
		return
	}
	for _, property := range record.StaticProperties() {
		switch property.Key {
		case "parameters":
			property.Value = textsType
		case "namespace":
			refineMetadata(property.Value)
		case "object", "oldObject", "template", "instancetype", "preference":
			refineMetadata(property.Value)
			property.Value = types.Or(property.Value, types.Nl)
		case "request":
			for _, property := range property.Value.(*types.Object).StaticProperties() {
				if property.Key == "time" {
					property.Value = types.Or(property.Value, types.Nl)
				}
			}
		}
	}
}

// textsType is the type of an object whose keys and values are strings.
var textsType = types.NewObject(nil, types.NewDynamicProperty(types.S, types.S))

// refineMetadata gives the labels and annotations of an object, or of its metadata, their type.
func refineMetadata(of types.Type) {
	switch of := of.(type) {
	case types.Any:
		for _, part := range of {
			refineMetadata(part)
		}
	case *types.Object:
		for _, property := range of.StaticProperties() {
			switch property.Key {
			case "labels", "annotations":
				property.Value = textsType
			case "metadata":
				refineMetadata(property.Value)
			}
		}
	}
}

// Compile checks a definition and makes a policy of it. The error is a *CompileError
// that holds all problems, or ctx's error when ctx ends first.
//
// Nothing can interrupt OPA's compiler. When ctx ends first, the goroutine that compiles continues until it is done. The time and the memory that it
// takes have no useful limit: compile sources that are not trusted in a process of their own first.
func (c *Compiler) Compile(ctx context.Context, d Definition) (*Policy, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type compilation struct {
		policy *Policy
		err    error
	}
	done := make(chan compilation, 1)
	go func() {
		policy, err := c.compile(d)
		done <- compilation{policy, err}
	}()
	select {
	case result := <-done:
		return result.policy, result.err
	case <-ctx.Done():
		return nil, fmt.Errorf("compiling policy %s: %w", d.Name, ctx.Err())
	}
}

// compile does the work of Compile. OPA must not panic, but its input is hostile.
func (c *Compiler) compile(d Definition) (policy *Policy, err error) {
	text := newSource(d.Source)
	defer func() {
		if r := recover(); r != nil {
			policy, err = nil, &CompileError{[]Problem{{Code: CodeCompile, Message: shorten(fmt.Sprintf("the compiler failed: %v", r), MaxMessageBytes)}}}
		}
		if rejected := (*CompileError)(nil); errors.As(err, &rejected) {
			for i := range rejected.Problems {
				rejected.Problems[i].Message = named(rejected.Problems[i].Message, d.Name)
			}
		}
	}()
	if problems := text.check(); len(problems) > 0 {
		return nil, &CompileError{problems}
	}
	kinds, problems := kindsOf(d)
	parameters, more := checkParameters(d)
	problems = append(problems, more...)
	environments := c.environments.Load()
	key, hasKey := keyOf(d, kinds, environments.schemas.Digest())
	if len(problems) == 0 && hasKey {
		if shared := c.programs.get(key); shared != nil {
			return c.policy(d, kinds, shared, parameters)
		}
	}
	given := d
	if slices.ContainsFunc(more, func(p Problem) bool { return p.Code == CodeSchema }) {
		given.Schema = nil
	}
	module, more := text.parse(sourceFile, c.sandbox.Capabilities)
	if len(more) > 0 {
		return nil, &CompileError{inOrder(append(problems, more...))}
	}
	form := &shape{source: text, module: module, helpers: c.helpers.documented, parameters: parameterNames(d), bare: d.Schema == nil && d.Parameters != nil && len(d.Parameters) == 0, data: referenceNames(d)}
	form.check()
	metadata := form.metadata()
	problems = append(problems, form.problems...)
	if slices.ContainsFunc(problems, func(p Problem) bool { return p.Code == CodeLimit }) {
		return nil, &CompileError{inOrder(problems)}
	}
	form.move()
	reads := readsOf(slices.DeleteFunc([]*ast.Module{module, c.helpers.module(module)}, func(m *ast.Module) bool { return m == nil })...)
	compared := comparedIn(module)
	program, more := c.link(text, given, kinds, module, environments)
	if slices.ContainsFunc(problems, func(p Problem) bool { return p.Code == CodeReference }) {
		// Invalid references cause further errors, also of types.
		more = slices.DeleteFunc(more, func(p Problem) bool {
			return p.Code == CodeCompile || p.Code == CodeType && strings.HasPrefix(p.Message, "unknown field: data.cluster has no ")
		})
	}
	problems = append(problems, more...)
	if len(problems) > 0 {
		return nil, &CompileError{inOrder(problems)}
	}
	program.source, program.metadata, program.reads, program.compared = text, metadata, reads, compared
	if hasKey {
		c.programs.put(key, program)
	}
	return c.policy(d, kinds, program, parameters)
}

// policy makes a policy of a program and its parameters.
func (c *Compiler) policy(d Definition, kinds []string, program *program, parameters map[string]any) (*Policy, error) {
	d.Kinds = kinds
	policy := &Policy{program: program, patterns: c.patterns}
	if err := policy.setParameters(d, parameters); err != nil {
		return nil, err
	}
	return policy, nil
}

func kindsOf(d Definition) ([]string, []Problem) {
	kinds := slices.Clone(d.Kinds)
	if len(kinds) == 0 {
		kinds = []string{KindVirtualMachine}
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	for _, kind := range kinds {
		if !slices.Contains(schema.Kinds(), kind) {
			return nil, []Problem{{Code: CodeCompile, Field: "match.kinds", Message: fmt.Sprintf("policies cannot be about %q; they can be about %s", kind, strings.Join(schema.Kinds(), ", "))}}
		}
	}
	return kinds, nil
}

// maxProblems is how many problems are reported.
const maxProblems = 20

// inOrder sorts problems by their position, drops duplicates, and limits their number.
func inOrder(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		if a.Row != b.Row {
			return a.Row - b.Row
		}
		return a.Column - b.Column
	})
	problems = slices.Compact(problems)
	if len(problems) > maxProblems {
		more := len(problems) - maxProblems
		problems = append(problems[:maxProblems:maxProblems], Problem{Code: CodeLimit, Message: fmt.Sprintf("%d more problems are not listed", more)})
	}
	return problems
}

// Builtins returns the names of the built-in functions that policies may call, as authors use them.
func Builtins() []string { return sandbox.Builtins() }
