package rego

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// metadata reads the annotations of the package, and adds the problems in them.
func (s *shape) metadata() Metadata {
	result := Metadata{Severity: SeverityMedium}
	for _, annotations := range s.module.Annotations {
		if annotations.Scope != "package" {
			continue
		}
		result.Title = strings.TrimSpace(annotations.Title)
		result.Description = strings.TrimSpace(annotations.Description)
		given, ok := annotations.Custom["severity"]
		if !ok {
			continue
		}
		text, _ := given.(string)
		switch severity := Severity(text); severity {
		case SeverityLow, SeverityMedium, SeverityHigh, SeverityCritical:
			result.Severity = severity
		default:
			s.add(CodeMetadata, annotations.Location, "custom.severity is %v; it can be low, medium, high or critical", given)
		}
	}
	return result
}

// helperNames returns the documented rules of data.lib, which are those that policies may use.
func helperNames(modules []*ast.Module) map[string]bool {
	documented := map[string]bool{}
	for _, module := range modules {
		set, errs := ast.BuildAnnotationSet([]*ast.Module{module})
		if len(errs) > 0 {
			continue
		}
		for _, entry := range set.Flatten() {
			if rule := entry.GetRule(); rule != nil {
				documented[ruleName(rule)] = true
			}
		}
	}
	return documented
}
