package policies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/clock"

	templatecache "github.com/vmstencil/stencil/cache/templates"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

const (
	// MaximumSample is the maximum number of stored VirtualMachines that a policy is tried on.
	MaximumSample = 100
	// MaximumSampleTime is the maximum duration of reading and evaluating them.
	MaximumSampleTime = time.Second
	// samplePage is the number of VirtualMachines that are read at a time.
	samplePage = 100
)

// VirtualMachines reads stored VirtualMachines, page by page; a disks.APIServer implements it.
type VirtualMachines interface {
	VirtualMachines(ctx context.Context, limit int64, token string) (page []map[string]any, next string, err error)
}

// Namespaces returns the labels and annotations of namespaces; an approvalcache.Cache implements it.
type Namespaces interface {
	Namespace(ctx context.Context, name string) (labels, annotations map[string]string, found bool)
}

// Templates returns compiled templates, nil for one that does not exist; a templatecache.Cache implements it.
type Templates interface {
	Get(namespace, name string) *templatecache.Template
}

// Exceptions are the exceptions from policies; an exceptioncache.Cache implements it.
type Exceptions interface{ Set() *policyset.Exceptions }

// Sampler tries policies on stored VirtualMachines.
type Sampler struct {
	VirtualMachines VirtualMachines
	Namespaces      Namespaces
	Templates       Templates
	// Instancetypes must not wait for objects that do not exist.
	Instancetypes sizing.Resolver
	// Exceptions of stored VirtualMachines; nil has none.
	Exceptions Exceptions
	Clock      clock.PassiveClock
}

// sample is the result of a trial.
type sample struct {
	// operation is the one as which the VirtualMachines were evaluated.
	operation string
	// evaluated is the number of VirtualMachines that the policy selects and that were evaluated; all is true if there are no others.
	evaluated int
	all       bool
	// effect of the policy on the VMs that violate it; found are the VMs on which the active version has less, as NAMESPACE/NAME.
	effect effect
	found  []string
	// unknown is the number of those that violate it, perhaps because of the time or the user of a request: stored objects have none.
	unknown int
	// failed is the first VirtualMachine, stored or synthetic, on which the evaluation failed, and why; nil if there is none.
	failed *failedTrial
}

// failedTrial is an evaluation that failed.
type failedTrial struct {
	// object is the VirtualMachine as NAMESPACE/NAME; empty for a synthetic object.
	object string
	// kind and operation of the request.
	kind, operation string
	err             error
}

// stored evaluates a version, and the active one if it is not nil, for stored VirtualMachines as if they were created now, or changed if the version
// is about changes only. The error is about reading them.
func (s *Sampler) stored(ctx context.Context, entry, active *policyset.Entry) (sample, error) {
	var found sample
	operation := operationOf(entry)
	found.operation = operation
	if operation == "" {
		return found, nil
	}
	// One that exceeds its time is tried again.
	ctx, cancel := context.WithTimeout(ctx, MaximumSampleTime+min(attempts*entry.Timeout, MaximumSampleTime))
	defer cancel()
	versions := newVersions(entry, active)
	for token := ""; ; {
		page, next, err := s.VirtualMachines.VirtualMachines(ctx, samplePage, token)
		switch {
		case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
			return found, nil
		case err != nil:
			return found, err
		}
		for _, object := range page {
			if ctx.Err() != nil || found.evaluated == MaximumSample {
				return found, nil
			}
			s.one(ctx, &found, versions, operation, object)
			if found.failed != nil {
				return found, nil
			}
		}
		if token = next; token == "" {
			found.all = true
			return found, nil
		}
	}
}

// one evaluates the versions for one VirtualMachine. One whose instance type is not found is left out.
func (s *Sampler) one(ctx context.Context, found *sample, v *versions, operation string, object map[string]any) {
	c := s.request(ctx, operation, object)
	if len(v.tried.Matching(c.Query())) == 0 {
		return
	}
	if len(c.Resolve(ctx, s.Instancetypes)) > 0 {
		return
	}
	input, err := rego.NewInput(c.Document())
	if err != nil {
		return
	}
	name := c.Request.Namespace + "/" + c.Request.Name
	decision, err := v.try(ctx, input)
	if err != nil {
		found.failed = &failedTrial{object: name, kind: c.Request.Kind, operation: operation, err: err}
		return
	}
	if decision.Evaluations[0].Result.Failed() {
		return // the time for all is over
	}
	found.evaluated++
	s.except(c, &decision)
	effect := effectOf(&decision)
	if effect == nothing {
		return
	}
	if policyset.ReadsRequest(v.tried.Entries()[0].Policy) {
		found.unknown++
		return
	}
	before := v.evaluator.Evaluate(ctx, v.active.Matching(c.Query()), input)
	if s.except(c, &before); effectOf(&before) < effect {
		found.effect = effect
		found.found = append(found.found, name)
	}
}

// except applies the exceptions that do not depend on a user.
func (s *Sampler) except(c *policyinput.Case, decision *policyset.Decision) {
	if s.Exceptions != nil {
		c.Except(decision, s.Exceptions.Set(), c.Request.Time)
	}
}

// effect is what the violations of a policy's deny rules lead to. A larger one has more consequences.
type effect int

const (
	nothing effect = iota
	recorded
	warned
	denied
)

func effectOf(decision *policyset.Decision) effect {
	violated := func(list []policyset.Violation) bool {
		return slices.ContainsFunc(list, func(v policyset.Violation) bool { return v.Rule == policyset.RuleDeny })
	}
	switch {
	case len(decision.Denials) > 0:
		return denied
	case violated(decision.Warnings):
		return warned
	case violated(decision.Audited):
		return recorded
	}
	return nothing
}

// request returns the case of a stored VirtualMachine.
func (s *Sampler) request(ctx context.Context, operation string, object map[string]any) *policyinput.Case {
	metadata, _ := object["metadata"].(map[string]any)
	namespace := machine.StringAt(metadata, "namespace")
	c := &policyinput.Case{
		Request: rego.Request{
			Operation: operation, Kind: rego.KindVirtualMachine, Namespace: namespace, Name: machine.StringAt(metadata, "name"), Time: s.Clock.Now(),
		},
		Object: object, IgnoreSubjects: true, Namespace: rego.Namespace{Name: namespace},
	}
	if operation == operationUpdate {
		c.OldObject = object
	}
	c.Namespace.Labels, c.Namespace.Annotations, _ = s.Namespaces.Namespace(ctx, namespace)
	if origin, found := policyinput.OriginOf(object, namespace); found {
		if stored := s.Templates.Get(origin.Namespace, origin.Name); stored == nil {
			c.Template = origin.Template(nil, nil)
		} else {
			// A template that does not compile has no parameters.
			compiled, _ := stored.Compiled()
			c.Template = origin.Template(stored.Metadata(), compiled)
		}
	}
	return c
}

const (
	operationCreate = "CREATE"
	operationUpdate = "UPDATE"
	operationDelete = "DELETE"
)

// operationOf returns the operation with which stored VirtualMachines are evaluated; empty if the policy is not about them.
func operationOf(entry *policyset.Entry) string {
	set := policyset.NewSet([]policyset.Entry{*entry})
	for _, operation := range []string{operationCreate, operationUpdate} {
		if !set.Empty(rego.KindVirtualMachine, operation) {
			return operation
		}
	}
	return ""
}

// versions are a version that is tried and the active one, which may be none, with an evaluator whose measurements do not count.
type versions struct {
	tried, active *policyset.Set
	evaluator     *policyset.Evaluator
}

func newVersions(entry, active *policyset.Entry) *versions {
	v := &versions{
		tried: policyset.NewSet([]policyset.Entry{*entry}), active: policyset.NewSet(nil),
		evaluator: policyset.NewEvaluator(policyset.Options{Workers: 1, Deadline: MaximumSampleTime}),
	}
	if active != nil {
		v.active = policyset.NewSet([]policyset.Entry{*active})
	}
	return v
}

// attempts is how often a version may exceed its time for an object: once, it could be the machine that is slow.
const attempts = 3

// try evaluates the version that is tried. The error is that of a module that failed, or that the version has exceeded its time in every attempt: it would do so
// for each request.
func (v *versions) try(ctx context.Context, input *rego.Input) (decision policyset.Decision, err error) {
	for range attempts {
		decision = v.evaluator.Evaluate(ctx, v.tried.Entries(), input)
		if err := evaluationError(&decision); err != nil || decision.Evaluations[0].Result != policyset.ResultTimeout || ctx.Err() != nil {
			return decision, err
		}
	}
	return decision, decision.Evaluations[0].Err
}

// evaluationError returns the error of a module that failed, without values of the object, nil if none did. A timeout is no error.
func evaluationError(decision *policyset.Decision) error {
	failed := slices.ContainsFunc(decision.Evaluations, func(e policyset.Evaluation) bool {
		var at *rego.EvaluationError
		return e.Result == policyset.ResultError && errors.As(e.Err, &at)
	})
	if !failed {
		return nil
	}
	policyinput.Redact(decision)
	return decision.Evaluations[0].Err
}

// text returns a description, which names the object if the user may list VirtualMachines.
func (f *failedTrial) text(named bool) string {
	object := "a stored " + f.kind
	switch {
	case f.object == "":
		object = "the simplest " + f.kind
	case named:
		object = "the stored " + f.kind + " " + f.object
	}
	return fmt.Sprintf("it cannot be evaluated for %s (%s): %v", object, f.operation, f.err)
}
