package rego

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/vmstencil/stencil/rego/internal/sandbox"
)

// Evaluate returns the findings of the policy for an input. The error is an *EvaluationError, a *DataError, or wraps ctx's error when ctx ended the evaluation.
func (p *Policy) Evaluate(ctx context.Context, in *Input) (Result, error) {
	if result, decided, err := p.Attempt(ctx, in); decided {
		return result, err
	}
	return p.Complete(ctx, in)
}

// Attempt does what Evaluate does where that takes little: a sixteenth of the steps and of the values of an evaluation, and a quarter of the time that is
// left, at most 50 ms and the last call of a built-in function. Where decided is false, Complete evaluates the policy.
func (p *Policy) Attempt(ctx context.Context, in *Input) (result Result, decided bool, err error) {
	if err := p.dataError(); err != nil {
		return Result{}, true, err
	}
	if values, ok := p.evaluateFast(ctx, in); ok {
		result, err = p.result(values)
		return result, true, err
	}
	return Result{}, false, nil
}

// Complete does what Evaluate does, without an attempt: by OPA's evaluation.
func (p *Policy) Complete(ctx context.Context, in *Input) (Result, error) {
	found, err := p.run(ctx, in, nil)
	if err != nil {
		return Result{}, err
	}
	return p.result(p.values(found))
}

// noTime is the time of every evaluation: no function that policies may call uses it, and reading the clock costs time.
var noTime = time.Unix(0, 0)

// run evaluates the query. OPA must not panic, but its input is hostile.
func (p *Policy) run(ctx context.Context, in *Input, tracer topdown.QueryTracer) (found topdown.QueryResult, err error) {
	if err := ctx.Err(); err != nil {
		return nil, p.interrupted(err)
	}
	if err := p.dataError(); err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			found, err = nil, &EvaluationError{Policy: p.definition.Name, Problem: Problem{Code: CodeEvaluation, Message: shorten(fmt.Sprintf("the evaluation failed: %v", r), MaxMessageBytes)}}
		}
	}()
	spent := sandbox.NewBudget(ctx, in.weight+p.weight+p.dataWeight, p.patterns)
	cache := &sandbox.Results{VirtualCache: topdown.NewVirtualCache(), Budget: spent, Shared: &in.shared, Constants: p.constants}
	spent.Documents = &in.shared
	query := p.query(p.program.query, in.term, spent).WithVirtualCache(cache)
	if tracer != nil {
		// The tracer must see every rule, also those that an index excludes.
		cache.Shared, cache.Constants = nil, nil
		query = query.WithQueryTracer(tracer).WithIndexing(false).WithEarlyExit(false)
	}
	err = query.Iter(ctx, func(result topdown.QueryResult) error {
		found = result
		return nil
	})
	if why := spent.Err(); why != nil {
		return nil, p.interrupted(why)
	}
	if err != nil {
		return nil, p.failed(err)
	}
	cache.Share()
	return found, nil
}

// query is a query of the policy's rules, without the cache of their results.
func (p *Policy) query(body ast.Body, input *ast.Term, spent *sandbox.Budget) *topdown.Query {
	return topdown.NewQuery(body).
		WithCompiler(p.program.compiler).
		WithInput(input).
		WithBaseCache(documents{p.parameters, p.cluster}).
		WithStore(noStore{}).
		WithBuiltins(p.program.functions).
		WithCancel(spent).
		WithMetrics(metrics.NoOp()).
		WithTime(noTime).
		WithStrictBuiltinErrors(true)
}

// interrupted returns the error of an evaluation that its context or its budget ended.
func (p *Policy) interrupted(why error) error {
	if errors.Is(why, context.DeadlineExceeded) || errors.Is(why, context.Canceled) {
		return fmt.Errorf("evaluating policy %s: %w", p.definition.Name, why)
	}
	return &EvaluationError{Policy: p.definition.Name, Problem: Problem{Code: CodeLimit, Message: why.Error()}}
}

// failed translates OPA's error.
func (p *Policy) failed(err error) error {
	problem := Problem{Code: CodeEvaluation, Message: shorten(err.Error(), MaxMessageBytes)}
	var typed *topdown.Error
	if errors.As(err, &typed) {
		// The message of a conflict has several lines.
		message := named(strings.Join(strings.Fields(strings.ReplaceAll(typed.Message, policyPackage.String()+".", "")), " "), p.definition.Name)
		problem = p.program.source.at(CodeEvaluation, typed.Location, "%s", message)
		if typed.Location != nil && strings.HasPrefix(typed.Location.File, "lib/") {
			problem = Problem{Code: CodeEvaluation, Message: fmt.Sprintf("data.%s:%d: %s", typed.Location.File, typed.Location.Row, typed.Message)}
		}
	}
	return &EvaluationError{Policy: p.definition.Name, Problem: problem}
}

// documents are the base documents of evaluations: data.parameters, data.cluster and nothing else.
type documents struct{ parameters, cluster ast.Value }

// Get is part of topdown.BaseCache.
func (d documents) Get(ref ast.Ref) ast.Value {
	var document ast.Value
	switch {
	case len(ref) < 2:
		return nil
	case ref[1].Equal(parametersTerm):
		document = d.parameters
	case ref[1].Equal(clusterTerm):
		document = d.cluster
	default:
		return nil
	}
	value, err := document.Find(ref[2:])
	if err != nil {
		return nil
	}
	return value
}

// Put is part of topdown.BaseCache.
func (documents) Put(ast.Ref, ast.Value) {}

// noStore is the store for everything that documents does not have. It is empty.
type noStore struct{ storage.Store }

// Read is part of storage.Store.
func (noStore) Read(context.Context, storage.Transaction, storage.Path) (any, error) {
	return nil, &storage.Error{Code: storage.NotFoundErr}
}
