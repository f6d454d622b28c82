package compliance

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	templatecache "github.com/vmstencil/stencil/cache/templates"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/policies/sample"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// Namespaces returns the labels and annotations of namespaces; approvalcache.Cache implements it.
type Namespaces interface {
	Namespace(ctx context.Context, name string) (labels, annotations map[string]string, cached bool)
}

// Evaluator evaluates policies; policyset.Evaluator implements it.
type Evaluator interface {
	Evaluate(ctx context.Context, entries []policyset.Entry, in *rego.Input) policyset.Decision
}

// operation is the operation of the requests that are evaluated, see sample.Case.
const operation = "CREATE"

// evaluation is the result of evaluating the policies for the sample of a template.
type evaluation struct {
	// applying are the names of the policies that apply to it.
	applying []string
	// sampleError is why the template has no sample; nil if it has one.
	sampleError *sample.Error
	decision    policyset.Decision
}

// evaluator evaluates one template.
type evaluator struct {
	set           *policyset.Set
	evaluator     Evaluator
	instancetypes sizing.Resolver
	// now is when the check began.
	now time.Time
}

func (j evaluator) evaluate(ctx context.Context, t *templatecache.Template, namespace rego.Namespace) *evaluation {
	vm, sampleError := sample.Of(t)
	c := sample.Case(t, vm, namespace, j.now)
	entries := j.set.Matching(c.Query())
	result := &evaluation{sampleError: sampleError}
	for i := range entries {
		result.applying = append(result.applying, entries[i].Policy.Name())
	}
	if len(entries) == 0 || sampleError != nil {
		return result
	}
	unresolved := c.Resolve(ctx, j.instancetypes)
	input, err := rego.NewInput(c.Document())
	if err != nil {
		policyinput.AddUnresolved(&result.decision, entries, field.ErrorList{field.InternalError(nil, fmt.Errorf("it cannot be shown to policies: %w", err))})
		return result
	}
	result.decision = j.evaluator.Evaluate(ctx, entries, input)
	policyinput.Redact(&result.decision)
	policyinput.AddUnresolved(&result.decision, entries, unresolved)
	// Nothing reads how each policy was evaluated, and the results of all templates are cached.
	result.decision.Evaluations = nil
	return result
}
