package rego

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/vmstencil/stencil/rego/internal/fastpath"
	"github.com/vmstencil/stencil/rego/internal/sandbox"
)

// evaluateFast evaluates like Complete at a fraction of its cost, or returns false where only OPA can.
func (p *Policy) evaluateFast(ctx context.Context, in *Input) (values entryValues, ok bool) {
	if ctx.Err() != nil || p.program.fast == nil || p.program.attempts.pointless() {
		return values, false
	}
	// What fails here is OPA's to report.
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	q := fastQueries.Get().(*fastQuery)
	defer q.free()
	q.ctx, q.policy, q.input = ctx, p, in
	q.budget.Reset(ctx, in.weight+p.weight+p.dataWeight, p.patterns)
	q.budget.LimitToAttempt()
	q.budget.Documents = &in.shared
	q.query = fastpath.Query{Input: in.term, Parameters: p.parameters, Cluster: p.cluster, Constants: p.constants, Helpers: q, Budget: &q.budget}
	ok = p.program.fast.Evaluate(ctx, &q.query, values[:len(p.program.entries)])
	if ctx.Err() == nil {
		p.program.attempts.count(ok, q.budget.Err() != nil)
	}
	return values, ok
}

// attempts counts the evaluations in which the fast path gave up, less those in which it did not.
type attempts struct{ failed atomic.Int32 }

const (
	// maxFailed is the number of failed attempts after which evaluations are left to OPA.
	maxFailed = 64
	// limitedCost is the number of failed attempts for which one counts that exceeded its limits: it took time that the evaluation needs.
	limitedCost = maxFailed / 4
	// pause is the number of evaluations until the next attempt.
	pause = 1024
)

// pointless reports whether an evaluation is left to OPA: attempts mostly fail, and cost time.
func (a *attempts) pointless() bool {
	if a.failed.Load() < maxFailed {
		return false
	}
	if a.failed.Add(1) > maxFailed+pause {
		a.failed.Store(maxFailed - limitedCost)
	}
	return true
}

// count adds an attempt.
func (a *attempts) count(ok, limited bool) {
	failed := a.failed.Load()
	switch {
	case limited:
		a.failed.Add(limitedCost)
	case !ok:
		a.failed.Add(1)
	case failed > 0:
		a.failed.CompareAndSwap(failed, failed-1)
	}
}

// fastQuery is the state of an evaluation. As fastpath.Helpers, it returns the values of the rules of data.lib, which OPA evaluates once for all policies
// of a request.
type fastQuery struct {
	ctx    context.Context
	policy *Policy
	input  *Input
	budget sandbox.Budget
	query  fastpath.Query
}

var fastQueries = sync.Pool{New: func() any { return &fastQuery{} }}

// free returns the state to the pool, without what it refers to.
func (q *fastQuery) free() {
	q.ctx, q.policy, q.input, q.query = nil, nil, nil, fastpath.Query{}
	q.budget.Reset(context.Background(), 0, nil)
	fastQueries.Put(q)
}

// Helper is part of fastpath.Helpers.
func (q *fastQuery) Helper(name ast.String) (*ast.Term, bool) {
	if value, cached := q.input.shared.Helper(name); cached {
		return value, true
	}
	cache := &sandbox.Results{VirtualCache: topdown.NewVirtualCache(), Budget: &q.budget, Shared: &q.input.shared}
	var value *ast.Term
	err := q.policy.query(helperQuery(name), q.input.term, &q.budget).WithVirtualCache(cache).Iter(q.ctx, func(found topdown.QueryResult) error {
		value = found["value"]
		return nil
	})
	if err != nil || q.budget.Err() != nil {
		return nil, false
	}
	cache.Share()
	if value == nil {
		q.input.shared.Undefined(name) // OPA does not cache it
	}
	return value, true
}

// helperQueries are the queries of the rules of data.lib, by name.
var helperQueries sync.Map

// helperQuery returns the query that binds value to the value of a rule of data.lib.
func helperQuery(name ast.String) ast.Body {
	if made, ok := helperQueries.Load(name); ok {
		return made.(ast.Body)
	}
	ref := ast.Ref{ast.DefaultRootDocument, sandbox.LibTerm, ast.NewTerm(name)}
	made, _ := helperQueries.LoadOrStore(name, ast.NewBody(ast.Equality.Expr(ast.VarTerm("value"), ast.NewTerm(ref))))
	return made.(ast.Body)
}
