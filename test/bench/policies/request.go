package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"sigs.k8s.io/yaml"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/test/bench/measurement"
)

// subject is the VM that is evaluated, and the requesting user.
type subject struct {
	document rego.Document
	bytes    int
}

// readVM returns the VM of files/machine.yaml, which Gatekeeper reviews as well.
func readVM() (*subject, error) {
	content, err := files.ReadFile("files/machine.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the VM: %w", err)
	}
	document, err := yaml.YAMLToJSON(content)
	if err != nil {
		return nil, fmt.Errorf("decoding the VM: %w", err)
	}
	var object map[string]any
	if err := json.Unmarshal(document, &object); err != nil {
		return nil, fmt.Errorf("decoding the VM: %w", err)
	}
	return &subject{bytes: len(document), document: rego.Document{
		Request: rego.Request{
			Operation: "CREATE", Kind: rego.KindVirtualMachine, Namespace: "team-a", Name: "web-1",
			UserInfo: rego.UserInfo{Username: "alice", Groups: []string{"team-a", "system:authenticated"}},
		},
		Object:     object,
		Namespace:  rego.Namespace{Name: "team-a", Labels: map[string]string{"kubernetes.io/metadata.name": "team-a"}},
		Template:   &rego.Template{Namespace: "golden", Name: "fedora"},
		Parameters: map[string]string{"NAME": "web-1", "INSTANCETYPE": "u1.medium"},
	}}, nil
}

func (s *subject) query() policyset.Query {
	return policyset.Query{
		Operation: s.document.Request.Operation, Kind: s.document.Request.Kind, Namespace: s.document.Request.Namespace,
		NamespaceLabels: s.document.Namespace.Labels,
		Template:        &policyset.TemplateRef{Namespace: s.document.Template.Namespace, Name: s.document.Template.Name},
		User:            s.document.Request.UserInfo, HasUser: true,
	}
}

// evaluate does the work of a webhook for a request: find the policies, convert the input, evaluate.
func (s *subject) evaluate(ctx context.Context, evaluator *policyset.Evaluator, set *policyset.Set) (policyset.Decision, error) {
	entries := set.Matching(s.query())
	in, err := set.Input(s.document)
	if err != nil {
		return policyset.Decision{}, fmt.Errorf("making the input: %w", err)
	}
	return evaluator.Evaluate(ctx, entries, in), nil
}

// sound fails unless every policy had a result.
func sound(decision policyset.Decision, number int) (findings int, err error) {
	if len(decision.Evaluations) != number {
		return 0, fmt.Errorf("%d of %d policies were evaluated", len(decision.Evaluations), number)
	}
	for _, evaluation := range decision.Evaluations {
		if evaluation.Result.Failed() {
			return 0, fmt.Errorf("policy %s: %s: %w", evaluation.Policy, evaluation.Result, evaluation.Err)
		}
		if evaluation.Result != policyset.ResultAllow {
			findings++
		}
	}
	return findings, nil
}

// request measures what one request costs with a number of policies.
func request(ctx context.Context, duration time.Duration, compiler *rego.Compiler, policies library, vm *subject, number int) (measurement.Cost, int, error) {
	entries, err := policies.specs(number).compile(ctx, compiler)
	if err != nil {
		return measurement.Cost{}, 0, err
	}
	set, evaluator := policyset.NewSet(entries), policyset.NewEvaluator(policyset.Options{})
	decision, err := vm.evaluate(ctx, evaluator, set)
	if err != nil {
		return measurement.Cost{}, 0, err
	}
	findings, err := sound(decision, number)
	if err != nil {
		return measurement.Cost{}, 0, err
	}
	cost, err := measurement.Of(duration, func() error {
		_, err := vm.evaluate(ctx, evaluator, set)
		return err
	})
	return cost, findings, err
}
