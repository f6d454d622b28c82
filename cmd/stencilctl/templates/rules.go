package templates

import (
	"fmt"

	"github.com/vmstencil/stencil/machine"
	"github.com/vmstencil/stencil/validations"
)

// Judge judges a VirtualMachine by the rules of the template, and by those that it
// carries itself. What a rule misses on a machine that an instance type sizes may come
// from that, so it is left to the cluster, and told among the warnings.
func (t *Template) Judge(vm map[string]any) (violations, warnings []string) {
	read, _ := machine.Read(vm)
	if validations.Skipped(read.Annotations) {
		return nil, nil
	}
	spec, _ := vm["spec"].(map[string]any)
	_, sized := spec["instancetype"]
	for _, each := range []struct{ name, text string }{
		{validations.AnnotationTemplate, t.Object.Annotations[validations.AnnotationTemplate]},
		{validations.Annotation, machine.StringAt(read.Annotations, validations.Annotation)},
	} {
		rules, err := validations.Parse(each.text)
		if err != nil {
			violations = append(violations, fmt.Sprintf("annotation %s: %v", each.name, err))
			continue
		}
		for _, found := range validations.Judge(rules, spec["template"]) {
			switch {
			case found.Warning:
				warnings = append(warnings, found.String())
			case found.Missing && sized:
				warnings = append(warnings, fmt.Sprintf("%s: not judged here, because an instance type sizes the machine", found.Rule))
			default:
				violations = append(violations, found.String())
			}
		}
	}
	return violations, warnings
}
