package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	opa "github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/vmstencil/stencil/rego/lib"
	"github.com/vmstencil/stencil/test/bench/measurement"
)

// bare is policies of the library as prepared queries of OPA: without bounds, timeouts and statistics.
type bare []opa.PreparedEvalQuery

func (l library) bare(ctx context.Context) (bare, error) {
	helpers, err := lib.Sources()
	if err != nil {
		return nil, fmt.Errorf("reading the helpers: %w", err)
	}
	queries := make(bare, len(l))
	for i, spec := range l {
		definition := spec.Definition
		module, err := ast.ParseModuleWithOpts(definition.Name, definition.Source, ast.ParserOptions{RegoVersion: ast.RegoV1})
		if err != nil {
			return nil, fmt.Errorf("parsing %s: %w", definition.Name, err)
		}
		options := []func(*opa.Rego){
			opa.ParsedModule(module),
			opa.Query(entries(module)),
			opa.Store(inmem.NewFromObject(map[string]any{"parameters": definition.Parameters})),
			opa.StrictBuiltinErrors(true),
		}
		for name, source := range helpers {
			options = append(options, opa.Module("lib/"+name, source))
		}
		if queries[i], err = opa.New(options...).PrepareForEval(ctx); err != nil {
			return nil, fmt.Errorf("preparing %s: %w", definition.Name, err)
		}
	}
	return queries, nil
}

// entries is the query of the entry rules that a policy has.
func entries(module *ast.Module) string {
	var parts []string
	for _, entry := range []string{"deny", "warn"} {
		for _, rule := range module.Rules {
			if rule.Head.Name.String() == entry {
				parts = append(parts, fmt.Sprintf("%s = %s.%s", entry, module.Package.Path, entry))
				break
			}
		}
	}
	return strings.Join(parts, "; ")
}

// input converts the document once for all policies, as a careful user of OPA does.
func (s *subject) input() (ast.Value, error) {
	request := s.document.Request
	user, err := json.Marshal(request.UserInfo)
	if err != nil {
		return nil, fmt.Errorf("encoding the user: %w", err)
	}
	return ast.InterfaceToValue(map[string]any{
		"request": map[string]any{
			"operation": request.Operation, "kind": request.Kind, "requestKind": request.Kind, "namespace": request.Namespace, "name": request.Name,
			"dryRun": false, "time": nil, "userInfo": json.RawMessage(user),
		},
		"object": s.document.Object, "oldObject": nil,
		"namespace":  map[string]any{"name": s.document.Namespace.Name, "labels": s.document.Namespace.Labels, "annotations": map[string]string{}},
		"template":   map[string]any{"namespace": s.document.Template.Namespace, "name": s.document.Template.Name, "labels": map[string]string{}, "annotations": map[string]string{}, "parameters": []any{}},
		"parameters": s.document.Parameters, "instancetype": nil, "preference": nil, "objects": []any{},
	})
}

// evaluate returns how many policies have a finding.
func (b bare) evaluate(ctx context.Context, s *subject) (findings int, err error) {
	input, err := s.input()
	if err != nil {
		return 0, fmt.Errorf("making OPA's input: %w", err)
	}
	for i := range b {
		results, err := b[i].Eval(ctx, opa.EvalParsedInput(input))
		if err != nil {
			return 0, fmt.Errorf("evaluating with OPA: %w", err)
		}
		for _, result := range results {
			for _, found := range result.Bindings {
				if elements, ok := found.([]any); ok && len(elements) > 0 {
					findings++
					break
				}
			}
		}
	}
	return findings, nil
}

// bareRequest measures what one request costs with a number of prepared queries, which must find what Stencil finds.
func bareRequest(ctx context.Context, duration time.Duration, policies library, vm *subject, number, wanted int) (measurement.Cost, error) {
	queries, err := policies.specs(number).bare(ctx)
	if err != nil {
		return measurement.Cost{}, err
	}
	findings, err := queries.evaluate(ctx, vm)
	if err != nil {
		return measurement.Cost{}, err
	}
	if findings != wanted {
		return measurement.Cost{}, fmt.Errorf("with OPA alone, %d of %d policies find something, with Stencil %d", findings, number, wanted)
	}
	return measurement.Of(duration, func() error {
		_, err := queries.evaluate(ctx, vm)
		return err
	})
}
