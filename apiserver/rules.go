package apiserver

import (
	"bytes"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/template/validations"
	"github.com/vmstencil/stencil/template/validations/vmrules"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// evaluateRules evaluates the rules in the template and in the rendered VirtualMachine. Rules that only the cluster can evaluate, because the size of the VM
// is not available here, are among the warnings. create does not need it: the validating webhook evaluates VirtualMachines that are created.
func (h *handler) evaluateRules(ctx context.Context, found *templatecache.Template, made rendering, namespace string) ([]string, error) {
	c := vmrules.Case{
		Namespace: namespace,
		Template:  found.Namespace + "/" + found.Name,
		Rules:     found.Annotation(validations.AnnotationTemplate),
		Secret:    made.compiled.HasSensitive(),
		Sizes:     h.options.Sizes,
	}
	if c.Rules == "" && !bytes.Contains(made.rendered.JSON(), []byte(validations.Annotation)) {
		return nil, nil
	}
	var err error
	if c.Object, err = machine.Decode(made.rendered.JSON()); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("reading what was rendered: %w", err))
	}
	decision := c.Evaluate(ctx)
	var causes field.ErrorList
	for _, denial := range decision.Denials {
		causes = append(causes, &field.Error{Type: field.ErrorTypeInvalid, Field: "spec.virtualMachine." + denial.Field, BadValue: field.OmitValueType{}, Detail: denial.String()})
	}
	if len(causes) > 0 {
		return nil, apierrors.NewInvalid(templateKind, found.Name, causes)
	}
	var warnings []string
	for _, warning := range append(decision.Warnings, decision.Unevaluated...) {
		warnings = append(warnings, warning.String()+" at "+warning.Field)
	}
	return warnings, nil
}
