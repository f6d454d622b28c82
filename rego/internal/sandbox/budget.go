package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// Limits of one evaluation. A policy of the library uses less than a thousandth of them.
const (
	// maxSteps is how many expressions are evaluated: about as many as fit into half a second, the longest timeout of a policy.
	maxSteps = 1 << 18
	// maxUnits is the total size of created values, in units of 64 bytes: nodes of values and pieces of text.
	maxUnits = 512 << 10
	// MaxWeight is how large a single value may be, in the same units, not counting what it takes from the input.
	MaxWeight = 64 << 10
	// MaxDepth is how deeply a value may be nested.
	MaxDepth = 128
	// maxTime limits an evaluation with a context that has no deadline.
	maxTime = 5 * time.Second
	// stepsPerCheck is how many steps are between two checks of the time.
	stepsPerCheck = 64
)

// ErrDeep and the others are errors of evaluations.
var (
	errSteps = fmt.Errorf("the evaluation takes more than %d steps", maxSteps)
	errUnits = fmt.Errorf("the evaluation makes more than %d MiB of values", maxUnits*64>>20)
	errLarge = errors.New("a value is too large")
	ErrDeep  = fmt.Errorf("a value is nested more than %d deep", MaxDepth)
)

// Budget is what is left for one evaluation. It is the topdown.Cancel of the query: OPA calls it before every expression, so that no goroutine has to
// watch the time, and the expressions are counted.
type Budget struct {
	ctx      context.Context
	deadline time.Time
	steps    int
	units    int
	weight   int // of a single value
	patterns *Patterns
	weigher  weigher
	// Documents are those that policies of the same request have decoded; nil when there is nothing to share.
	Documents *Shared
	why       error
	cancelled atomic.Bool
}

// NewBudget returns the budget of an evaluation that ends with ctx, or after 5 s. inputWeight is the weight of the input, which a
// value may contain.
func NewBudget(ctx context.Context, inputWeight int, cache *Patterns) *Budget {
	b := &Budget{}
	b.Reset(ctx, inputWeight, cache)
	return b
}

// Reset makes a budget that is not used any more a new one, as NewBudget does.
func (b *Budget) Reset(ctx context.Context, inputWeight int, cache *Patterns) {
	b.ctx, b.patterns, b.Documents, b.why = ctx, cache, nil, nil
	b.steps, b.units, b.weight = 0, maxUnits, MaxWeight+inputWeight
	b.cancelled.Store(false)
	var limited bool
	if b.deadline, limited = ctx.Deadline(); !limited {
		b.deadline = time.Now().Add(maxTime)
	}
}

// Err returns why the evaluation had to end, nil if it did not.
func (b *Budget) Err() error { return b.why }

// LimitSteps reduces the number of expressions that may be evaluated. The largest is 262 144, which is the default.
func (b *Budget) LimitSteps(steps int) { b.steps = maxSteps - steps }

// The limits of an attempt: a fraction of what an evaluation may use, so that the evaluation itself has enough left.
const (
	attempts = 16
	// The time is a last resort, as a busy host can take more of it from a good policy than that needs.
	attemptTime    = 4
	maxAttemptTime = 50 * time.Millisecond
)

// LimitToAttempt reduces the steps and values that are left to a sixteenth, and the time to a quarter of what is left, at most 50 ms.
func (b *Budget) LimitToAttempt() {
	b.LimitSteps(maxSteps / attempts)
	b.units = maxUnits / attempts
	now := time.Now()
	b.deadline = now.Add(min(b.deadline.Sub(now)/attemptTime, maxAttemptTime))
}

// Cancel is part of topdown.Cancel.
func (b *Budget) Cancel() { b.cancelled.Store(true) }

// Cancelled counts a step, and reports whether the evaluation must end.
func (b *Budget) Cancelled() bool {
	if b.why != nil {
		return true
	}
	b.steps++
	if b.steps&(stepsPerCheck-1) == 0 {
		b.check()
	}
	return b.why != nil
}

func (b *Budget) check() {
	switch {
	case b.ctx.Err() != nil:
		b.why = b.ctx.Err()
	case !time.Now().Before(b.deadline):
		b.why = context.DeadlineExceeded
	case b.cancelled.Load():
		b.why = context.Canceled
	case b.steps > maxSteps:
		b.why = errSteps
	}
}

// Take counts a value that is created outside of functions.
func (b *Budget) Take(value ast.Value) error { return b.take(value) }

// take counts a created value.
func (b *Budget) take(value ast.Value) error {
	b.weigher.start(b.weight, MaxDepth)
	b.weigher.add(value)
	n := b.weigher.n
	b.units -= n
	switch {
	case b.why != nil:
	case b.weigher.deep:
		b.why = ErrDeep
	case b.weigher.wild:
		b.why = errNumber
	case n > b.weight:
		b.why = errLarge
	case b.units < 0:
		b.why = errUnits
	}
	return b.why
}

// weigher counts the nodes of a value, and 64 bytes of text as a node. It is a struct so that the callbacks for objects and sets are created once.
type weigher struct {
	n, limit int
	depth    int  // how much deeper the value may be
	deep     bool // the value was deeper
	wild     bool // it has numbers that are out of bounds
	visit    func(*ast.Term) bool
	visitKey func(*ast.Term, *ast.Term) bool
}

func (w *weigher) start(limit, depth int) {
	w.n, w.limit, w.depth, w.deep, w.wild = 0, limit, depth, false, false
	if w.visit == nil {
		w.visit = func(term *ast.Term) bool { return w.add(term.Value) }
		w.visitKey = func(key, value *ast.Term) bool { return w.add(key.Value) || w.add(value.Value) }
	}
}

// add counts a value, and reports whether counting can stop.
func (w *weigher) add(value ast.Value) bool {
	w.n++
	switch v := value.(type) {
	case ast.String:
		w.n += len(v) / 64
	case ast.Number:
		w.n += len(v) / 64
		w.wild = w.wild || CheckNumber(string(v)) != nil
	case *ast.Array:
		w.depth--
		for i := range v.Len() {
			if w.depth < 0 || w.add(v.Elem(i).Value) {
				break
			}
		}
		w.close()
	case ast.Object:
		w.depth--
		if w.depth >= 0 {
			v.Until(w.visitKey)
		}
		w.close()
	case ast.Set:
		w.depth--
		if w.depth >= 0 {
			v.Until(w.visit)
		}
		w.close()
	}
	return w.n > w.limit || w.deep || w.wild
}

func (w *weigher) close() {
	w.deep = w.deep || w.depth < 0
	w.depth++
}

// Weigh returns the weight, which is more than the limit when counting stopped there.
func Weigh(value ast.Value, limit int) int {
	var w weigher
	w.start(limit, MaxDepth)
	if w.add(value) {
		return max(w.n, limit+1) // too deep is too large as well
	}
	return w.n
}

// bindValue is called by compiled policies wherever an array, a set or an object is composed of variables. It counts the value, and binds its result to
// the computed value: OPA would otherwise compose it, and the values in it, again at each use.
var bindValue = &ast.Builtin{
	Name: boundedPrefix + "value",
	Decl: types.NewFunction(types.Args(types.A), types.A),
}

func bindValueBuiltin(context topdown.BuiltinContext, operands []*ast.Term, found func(*ast.Term) error) error {
	if spent, ok := context.Cancel.(*Budget); ok {
		if err := spent.take(operands[0].Value); err != nil {
			return failed("value", context.Location, err)
		}
	}
	return found(operands[0])
}

// Results is the cache of rules' results of one evaluation. It counts them, returns the constant ones, and shares those of helpers that depend on the
// input alone with the other policies of the request.
type Results struct {
	topdown.VirtualCache
	Budget *Budget
	// Shared are the results of helpers, nil to share none.
	Shared *Shared
	// Constants are the results of rules that do not depend on the input.
	Constants map[ast.String]*ast.Term
	// values and calls are the results of helpers that are to be shared.
	values []sharedValue
	calls  []sharedCall
}

type sharedValue struct {
	name  ast.String
	value *ast.Term
}

type sharedCall struct {
	ref   ast.Ref
	value *ast.Term
}

// Share shares the results of helpers. It is called after an evaluation without an error: OPA continues after the error of a function as if its
// expression were undefined, so that other policies would find wrong results and no error.
func (r *Results) Share() {
	if r.Shared == nil {
		return
	}
	for _, each := range r.values {
		r.Shared.put(each.name, each.value)
	}
	for _, each := range r.calls {
		if !r.Shared.putCall(each.ref, each.value) {
			return
		}
	}
}

// Get is part of topdown.VirtualCache.
func (r *Results) Get(ref ast.Ref) (*ast.Term, bool) {
	switch ownerKind, name := owner(ref); ownerKind {
	case ofHelper:
		if r.Shared != nil {
			if value, undefined := r.Shared.get(name); value != nil || undefined {
				return value, undefined
			}
		}
	case ofPolicy:
		if value, ok := r.Constants[name]; ok {
			return value, value == nil
		}
	case ofHelpersFunction:
		if r.Shared != nil {
			if value := r.Shared.call(ref); value != nil {
				return value, false
			}
		}
	}
	return r.VirtualCache.Get(ref)
}

// Put is part of topdown.VirtualCache.
func (r *Results) Put(ref ast.Ref, value *ast.Term) {
	if value != nil {
		_ = r.Budget.take(value.Value) // an error is stored in the budget, which ends the evaluation
	}
	r.Budget.units -= 4 // the entry itself
	if r.Shared != nil {
		switch ownerKind, name := owner(ref); ownerKind {
		case ofHelper:
			r.values = append(r.values, sharedValue{name, value})
		case ofHelpersFunction:
			if value != nil && len(r.calls) < maxSharedCalls {
				r.calls = append(r.calls, sharedCall{slices.Clone(ref), value}) // OPA uses the ref again
			}
		}
	}
	r.VirtualCache.Put(ref, value)
}

// The owners of what is cached.
const (
	ofOther = iota
	ofPolicy
	ofHelper
	ofHelpersFunction
)

// The packages data.lib and data.policy, in refs.
var (
	LibTerm    = ast.StringTerm("lib")
	PolicyTerm = ast.StringTerm("policy")
)

// owner returns the owner of the result of a ref: of a rule data.policy.NAME or data.lib.NAME, or of a function data.lib.NAME, for which the cache
// uses the ref of the function and its arguments.
func owner(ref ast.Ref) (int, ast.String) {
	if len(ref) == 0 {
		return ofOther, ""
	}
	if function, ok := ref[0].Value.(ast.Ref); ok {
		if len(function) == 3 && function[1].Value == LibTerm.Value {
			return ofHelpersFunction, ""
		}
		return ofOther, ""
	}
	if len(ref) != 3 {
		return ofOther, ""
	}
	name, _ := ref[2].Value.(ast.String)
	switch ref[1].Value {
	case PolicyTerm.Value:
		return ofPolicy, name
	case LibTerm.Value:
		return ofHelper, name
	}
	return ofOther, ""
}
