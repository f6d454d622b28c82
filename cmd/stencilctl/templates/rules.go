package templates

import (
	"context"

	"github.com/vmstencil/stencil/template/validations"
	"github.com/vmstencil/stencil/template/validations/vmrules"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Evaluate evaluates a VirtualMachine against the rules of the template and against those in its
// own annotations. A rule that fails on a VirtualMachine with an instance type may depend on
// values of the instance type, so the failure is a warning and the cluster decides.
func (t *Template) Evaluate(vm map[string]any) (violations, warnings []string) {
	metadata, _ := vm["metadata"].(map[string]any)
	decision := vmrules.Case{
		Object:    vm,
		Namespace: machine.StringAt(metadata, "namespace"),
		Template:  t.Object.Name,
		Rules:     t.Object.Annotations[validations.AnnotationTemplate],
	}.Evaluate(context.Background())
	for _, found := range decision.Denials {
		violations = append(violations, found.String())
	}
	for _, found := range append(decision.Warnings, decision.Unevaluated...) {
		warnings = append(warnings, found.String())
	}
	return violations, warnings
}
