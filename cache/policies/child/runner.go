package child

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/open-policy-agent/opa/v1/version"
	"k8s.io/utils/lru"

	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/rego/schema"
)

const (
	// DefaultCompileTimeout is how long a policy may compile in a child. It is half of the timeout of the parent, which compiles the policy with a
	// higher priority.
	DefaultCompileTimeout = 5 * time.Second
	// DefaultTestTimeout is how long all tests of a policy may take.
	DefaultTestTimeout = 10 * time.Second
	// startTimeout is how long a child may take until it is ready; it needs less than a second of CPU time.
	startTimeout = 20 * time.Second
	// minShare is the divisor of a timeout that a child must have received as CPU time, so that the policy is the cause: half a second to compile, which is
	// ten times as long as any policy of the library needs.
	minShare = 10
	// grace is how much later than the child itself the parent ends tests.
	grace = 2 * time.Second
	// idle is how long a child waits for another policy.
	idle = time.Second
	// pause is the time after a failed start in which no other child is started.
	pause = 2 * time.Second
	// maxAttempts is how many children work on a policy if each is killed by another process.
	maxAttempts = 3
	// maxResults is the number of results that are cached.
	maxResults = 1024
)

// Options are the options of a Runner.
type Options struct {
	// Program is the command of a child, which calls Main.
	Program []string
	// Schemas returns the schemas of the input of policies.
	Schemas func() *schema.Schemas
	// CompileTimeout and TestTimeout default to DefaultCompileTimeout and DefaultTestTimeout.
	CompileTimeout, TestTimeout time.Duration
	Logger                      logr.Logger
	// Memory returns how much memory a policy may use, in bytes. By default it depends on the limit of the container.
	Memory func() (int64, error)
}

// Runner compiles and tests policies in children, one at a time. It is safe for concurrent use.
type Runner struct {
	options Options
	metrics *metrics
	results *lru.Cache
	// turn is held by the caller that uses the child.
	turn chan struct{}
	// child is nil if none runs.
	child *process
	// failure is why no child could be started at failed.
	failure error
	failed  time.Time

	mutex   sync.Mutex
	retired *time.Timer
}

// New returns a Runner. It starts a child when one is needed.
func New(o Options) *Runner {
	if o.CompileTimeout == 0 {
		o.CompileTimeout = DefaultCompileTimeout
	}
	if o.TestTimeout == 0 {
		o.TestTimeout = DefaultTestTimeout
	}
	if o.Memory == nil {
		o.Memory = available
	}
	return &Runner{options: o, metrics: newMetrics(), results: lru.New(maxResults), turn: make(chan struct{}, 1)}
}

// Result is the result of compiling and testing a policy.
type Result struct {
	// Problems are the reasons why it does not compile.
	Problems []rego.Problem
	// Failed are the failed tests.
	Failed []suite.Result
	// Overrun is true if a retry may have another result.
	Overrun bool
}

// UnavailableError is the error of a policy that could not be compiled for a reason that is not its own.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string {
	return "the process that compiles policies is not available: " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Check compiles a policy and runs its tests. The fields of the policy must be valid; see spec.Read. The error is ctx's, or an *UnavailableError.
func (r *Runner) Check(ctx context.Context, c Candidate) (Result, error) {
	key, err := r.key(c)
	if err != nil {
		return Result{}, err
	}
	if found, ok := r.results.Get(key); ok {
		return found.(Result), nil
	}
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	defer r.release()
	began := time.Now()
	result, end, err := r.check(ctx, c)
	r.metrics.observe(end, time.Since(began))
	if err == nil && end == endAnswered {
		r.results.Add(key, result)
	}
	return result, err
}

// key returns the digest of everything that the result depends on.
func (r *Runner) key(c Candidate) ([sha256.Size]byte, error) {
	schemas := r.options.Schemas().Digest()
	text, err := json.Marshal(struct {
		Engine    string
		Schemas   []byte
		Candidate Candidate
	}{version.Version, schemas[:], c})
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("encoding policy %s: %w", c.Name, err)
	}
	return sha256.Sum256(text), nil
}

// release lets the next caller use the child, which ends if there is none soon.
func (r *Runner) release() {
	<-r.turn
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.retired != nil {
		r.retired.Stop()
	}
	r.retired = time.AfterFunc(idle, r.retire)
}

// retire ends a child that is idle.
func (r *Runner) retire() {
	select {
	case r.turn <- struct{}{}:
		r.stop()
		<-r.turn
	default: // It is used, and will be released.
	}
}

func (r *Runner) stop() {
	if r.child != nil {
		r.child.end()
		r.child = nil
	}
}

// check checks a policy in a child. If a child ends, the policy is the cause only if the child had worked on no other before, and if another process
// killed it, only if that repeats.
func (r *Runner) check(ctx context.Context, c Candidate) (Result, end, error) {
	for attempt := 1; ; attempt++ {
		p, err := r.running(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return Result{}, endCancelled, ctx.Err()
			}
			return Result{}, endUnavailable, &UnavailableError{err}
		}
		fresh := !p.used
		result, end, err := r.exchange(ctx, p, c)
		if end == endAnswered {
			return result, end, nil
		}
		r.stop()
		switch end {
		case endKilled:
			if attempt < maxAttempts {
				continue
			}
		case endMemory, endStack, endCrashed:
			if !fresh {
				continue
			}
		}
		return result, end, err
	}
}

// running returns the child, after it has started one if necessary.
func (r *Runner) running(ctx context.Context) (*process, error) {
	schemas := r.options.Schemas()
	if r.child != nil && r.child.schemas == schemas.Digest() {
		return r.child, nil
	}
	r.stop()
	if r.failure != nil && time.Since(r.failed) < pause {
		return nil, r.failure
	}
	started, err := r.start(ctx, schemas)
	if err != nil && ctx.Err() == nil {
		// It may have been killed before it was ready.
		started, err = r.start(ctx, schemas)
	}
	if r.failure = err; err != nil {
		if r.failed = time.Now(); ctx.Err() != nil {
			r.failure = nil
		}
		return nil, err
	}
	r.child = started
	return started, nil
}

func (r *Runner) start(ctx context.Context, schemas *schema.Schemas) (*process, error) {
	memory, err := r.options.Memory()
	if err != nil {
		return nil, err
	}
	return start(ctx, r.options.Program, startTimeout, settings{MemoryBytes: memory, TestTimeout: r.options.TestTimeout, Schemas: schemas})
}

// exchange sends a policy to a child and receives the answers.
func (r *Runner) exchange(ctx context.Context, p *process, c Candidate) (Result, end, error) {
	p.used = true
	if err := p.write(c, r.options.CompileTimeout); err != nil {
		p.end()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return Result{}, endStarved, errStarved
		}
		return Result{}, endKilled, &UnavailableError{err}
	}
	var result Result
	compiled, end, err := r.await(ctx, p, r.options.CompileTimeout)
	if end != endAnswered {
		if text := p.problem(end, r.options.CompileTimeout); text != "" {
			return Result{Problems: []rego.Problem{{Code: rego.CodeLimit, Message: text}}, Overrun: true}, end, nil
		}
		return Result{}, end, err
	}
	if result.Problems = compiled.Problems; len(result.Problems) > 0 || len(c.Spec.Tests) == 0 {
		return result, endAnswered, nil
	}
	tested, end, err := r.await(ctx, p, r.options.TestTimeout+grace)
	if end != endAnswered {
		if text := p.failure(end, r.options.TestTimeout); text != "" {
			return Result{Failed: []suite.Result{{Name: c.Spec.Tests[0].Name, Failure: text}}, Overrun: true}, end, nil
		}
		return Result{}, end, err
	}
	if result.Failed = tested.Failed; tested.Overdue {
		end = endTimeout
	}
	return result, end, nil
}

var errStarved = &UnavailableError{errors.New("it received too little CPU time")}

// await waits for an answer, and finds out why there is none.
func (r *Runner) await(ctx context.Context, p *process, timeout time.Duration) (answer, end, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	before := p.cpu
	found, err := p.next(limited)
	if err == nil {
		return found, endAnswered, nil
	}
	ended := errors.Is(err, errEnded)
	p.end()
	switch {
	case ended:
		why := p.cause()
		r.options.Logger.Info("the process that compiles policies ended", "cause", why, "state", p.ended.String(), "output", p.errors.String())
		return found, why, &UnavailableError{errEnded}
	case ctx.Err() != nil:
		return found, endCancelled, ctx.Err()
	case p.ended.SystemTime()+p.ended.UserTime()-before < timeout/minShare:
		// It is not the policy that takes too long.
		return found, endStarved, errStarved
	default:
		return found, endTimeout, nil
	}
}
