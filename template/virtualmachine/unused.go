package virtualmachine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	contract "github.com/vmstencil/stencil/api/template"
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

// MisspeltWarnings returns a warning for each annotation beside a template-ref whose key resembles one that users write, and is another: it has no effect.
func MisspeltWarnings(annotations map[string]any) []string {
	home, reference, _ := strings.Cut(contract.AnnotationTemplateRef, "/")
	var warnings []string
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		domain, name, found := strings.Cut(key, "/")
		if !found {
			continue
		}
		meant := ""
		if label, rest, _ := strings.Cut(domain, "."); strings.EqualFold(rest, home) {
			if near := template.Nearest(label, []string{"parameter", "defaults"}); near != "" {
				meant = near + "." + home + "/" + name
			}
		} else if strings.EqualFold(domain, home) && template.Nearest(name, []string{reference}) != "" {
			meant = contract.AnnotationTemplateRef
		}
		if meant != "" && meant != key {
			warnings = append(warnings, fmt.Sprintf("annotation %s has no effect; did you mean %s?", key, meant))
		}
	}
	return warnings
}
