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
		if findings = defaults(compiled); len(findings) == 0 {
			findings = warnings(t, compiled)
		}
	}
	for _, cause := range Validations(t) {
		findings = append(findings, Finding{Rule: RuleValidations, Severity: Error, Path: cause.Field, Message: cause.ErrorBody()})
	}
	a := advisor{template: t}
	a.advise()
	return append(findings, a.findings...)
}

// maximumWarnings is the maximum number of warnings about one template.
const maximumWarnings = 32

// Warnings returns the warnings that the webhook returns when it stores a template.
func Warnings(t *v1beta1.VirtualMachineTemplate, compiled *template.Compiled) []string {
	var all []string
	for _, f := range warnings(t, compiled) {
		text := f.Message
		if f.Path != "" && f.Rule != RuleUnused {
			text = f.Path + ": " + text
		}
		all = append(all, text)
	}
	return all
}

// defaults returns the findings about values that the template has itself.
func defaults(compiled *template.Compiled) []Finding {
	var findings []Finding
	invalid, _ := compiled.CheckDefaults()
	for _, cause := range invalid {
		findings = append(findings, Finding{Rule: RuleDefaults, Severity: Error, Path: cause.Field, Message: cause.ErrorBody()})
	}
	return findings
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
	_, doubtful := compiled.CheckDefaults()
	for _, cause := range doubtful {
		findings = append(findings, Finding{Rule: RuleSuspicious, Severity: Warning, Path: cause.Field, Message: "only other values than the template's own make a VirtualMachine: " + cause.ErrorBody()})
	}
	a := advisor{template: t}
	if vm := a.decodedVM(); vm != nil {
		a.disks(vm)
	}
	findings = append(findings, a.findings...)
	for _, name := range compiled.Unused() {
		i := slices.IndexFunc(t.Spec.Parameters, func(p v1beta1.Parameter) bool { return p.Name == name })
		findings = append(findings, Finding{
			Rule: RuleUnused, Severity: Warning, Path: fmt.Sprintf("spec.parameters[%d].name", i), Message: unused(name),
		})
	}
	return findings[:min(len(findings), maximumWarnings)]
}
