package templates

import (
	"context"

	"github.com/vmstencil/stencil/template/validations"
	machinerules "github.com/vmstencil/stencil/template/validations/machines"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Judge judges a VirtualMachine by the rules of the template, and by those that it
// carries itself. What a rule misses on a machine that an instance type sizes may come
// from that, so it is left to the cluster, and told among the warnings.
func (t *Template) Judge(vm map[string]any) (violations, warnings []string) {
	metadata, _ := vm["metadata"].(map[string]any)
	verdict := machinerules.Case{
		Object:    vm,
		Namespace: machine.StringAt(metadata, "namespace"),
		Template:  t.Object.Name,
		Rules:     t.Object.Annotations[validations.AnnotationTemplate],
	}.Judge(context.Background())
	for _, found := range verdict.Denials {
		violations = append(violations, found.String())
	}
	for _, found := range append(verdict.Warnings, verdict.Unjudged...) {
		warnings = append(warnings, found.String())
	}
	return violations, warnings
}
