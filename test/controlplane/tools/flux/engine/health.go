package main

import (
	"context"
	"fmt"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling/engine"
	"github.com/fluxcd/cli-utils/pkg/kstatus/polling/statusreaders"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// readers returns what evaluates the health of objects: expressions where there are some for a kind, then the rules of kstatus.
func readers(checks []kustomize.CustomHealthCheck, mapper meta.RESTMapper) ([]engine.StatusReader, error) {
	all := []engine.StatusReader{}
	if len(checks) > 0 {
		construct, err := cel.NewStatusReader(checks)
		if err != nil {
			return nil, fmt.Errorf("compiling healthCheckExprs: %w", err)
		}
		all = append(all, construct(mapper))
	}
	return all, nil
}

// evaluate adds the health of a stored object. Where an expression fails, such as for a status that is missing, it is Unknown, and Flux waits.
func (r *resource) evaluate(ctx context.Context, object *unstructured.Unstructured, readers []engine.StatusReader, mapper meta.RESTMapper) error {
	for _, reader := range append(readers, statusreaders.NewDefaultStatusReader(mapper)) {
		if !reader.Supports(object.GroupVersionKind().GroupKind()) {
			continue
		}
		result, err := reader.ReadStatusForObject(ctx, nil, object)
		if err != nil {
			return fmt.Errorf("evaluating the health of %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		r.Health, r.Message = result.Status.String(), result.Message
		if result.Error != nil {
			r.Message = result.Error.Error()
		}
		return nil
	}
	return fmt.Errorf("no rule evaluates a %s", object.GetKind())
}

// evaluate returns the health of objects that are not in a cluster.
func evaluate(ctx context.Context, objects []*unstructured.Unstructured, checks []kustomize.CustomHealthCheck) (report, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	readers, err := readers(checks, mapper)
	if err != nil {
		return report{}, err
	}
	var result report
	for _, object := range objects {
		each := describe(object)
		if err := each.evaluate(ctx, object, readers, mapper); err != nil {
			return report{}, err
		}
		result.Resources = append(result.Resources, each)
	}
	return result, nil
}
