package virtualmachine

import (
	"fmt"

	"github.com/vmstencil/stencil/template"
)

// UnusedWarnings returns a warning for each given value of a parameter that has no effect.
func UnusedWarnings(compiled *template.Compiled, given map[string]string) []string {
	var warnings []string
	for _, name := range compiled.Unused() {
		if _, found := given[name]; found {
			warnings = append(warnings, fmt.Sprintf("parameter %s has no effect: the template declares it and never refers to it", name))
		}
	}
	return warnings
}
