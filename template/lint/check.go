package lint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
)

// Check returns the findings about a template: the errors, or the warnings if there are no errors; and the advice. Findings
// of one severity are in the order in which they were found.
func Check(t *v1beta1.VirtualMachineTemplate) []Finding {
	var findings []Finding
	compiled, err := template.Compile(t)
	var invalid *template.InvalidError
	switch {
	case errors.As(err, &invalid):
		for _, cause := range invalid.Causes {
			findings = append(findings, Finding{
				Rule: RuleInvalid, Severity: Error, Path: cause.Field, Message: cause.ErrorBody(),
				Key: strings.HasPrefix(cause.Detail, "there is no such field"),
			})
		}
	case err != nil:
		findings = append(findings, Finding{Rule: RuleInvalid, Severity: Error, Message: err.Error()})
	default:
		findings = warnings(t, compiled)
	}
	for _, cause := range Validations(t) {
		findings = append(findings, Finding{Rule: RuleValidations, Severity: Error, Path: cause.Field, Message: cause.ErrorBody()})
	}
	a := advisor{template: t}
	a.advise()
	return append(findings, a.findings...)
}

// Warnings returns the warnings that the webhook returns when it stores a template.
func Warnings(compiled *template.Compiled) []string {
	all := compiled.Warnings()
	for _, name := range compiled.Unused() {
		all = append(all, unused(name))
	}
	return all
}

func unused(name string) string {
	return fmt.Sprintf("parameter %s is declared and never referred to", name)
}

func warnings(t *v1beta1.VirtualMachineTemplate, compiled *template.Compiled) []Finding {
	var findings []Finding
	for _, text := range compiled.Warnings() {
		// The engine's warnings begin with the place that they refer to.
		path, message, found := strings.Cut(text, ": ")
		if !found || !strings.HasPrefix(path, "spec.") {
			path, message = "", text
		}
		findings = append(findings, Finding{Rule: RuleSuspicious, Severity: Warning, Path: path, Message: message})
	}
	for _, name := range compiled.Unused() {
		i := slices.IndexFunc(t.Spec.Parameters, func(p v1beta1.Parameter) bool { return p.Name == name })
		findings = append(findings, Finding{
			Rule: RuleUnused, Severity: Warning, Path: fmt.Sprintf("spec.parameters[%d].name", i), Message: unused(name),
		})
	}
	return findings
}
