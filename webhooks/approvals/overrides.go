package approvals

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/rego/schema/definition"
	"github.com/vmstencil/stencil/template"
)

// aboutOverrides warns about overrides that permit changes to most of a template, and about paths that no VirtualMachine has.
func (s input) aboutOverrides() []string {
	var all []string
	for i, text := range s.spec.Overrides {
		override, err := approval.ParseOverride(text)
		if err != nil {
			continue // the approval would not have compiled
		}
		if problem := missing(s.machine, override.Path()); problem != "" {
			all = append(all, fmt.Sprintf("spec.overrides[%d]: %s", i, problem))
		}
		for _, much := range []string{"spec", "spec.template", "spec.template.spec", "spec.template.spec.domain"} {
			if strings.TrimSuffix(override.String(), ".*") == much {
				all = append(all, fmt.Sprintf("spec.overrides[%d]: override %s permits users to replace most of what the template defines", i, text))
			}
		}
	}
	return all
}

// missing describes the first step of a path that the schema of VirtualMachines does not have. It returns "" if there is none, and where the schema
// permits any field.
func missing(schema definition.Schema, path approval.Path) string {
	for i, step := range path {
		at := path[:i].String()
		name, _ := step.Name()
		switch {
		case schema.Type == "array":
			if !step.Items() {
				return fmt.Sprintf("%s is a list: write %s[*] or %s[name=NAME] for its items", at, at, at)
			}
			if schema.Items == nil {
				return ""
			}
			schema = *schema.Items
		case schema.Type == "" && len(schema.AnyOf) == 0 || schema.Preserve, schema.Type == "object" && len(schema.Properties) == 0:
			return ""
		case len(schema.Properties) == 0 || step.Items():
			return fmt.Sprintf("no VirtualMachine has %s: %s has no items or fields", path[:i+1], at)
		case name == "": // all fields
			return ""
		default:
			below, found := schema.Properties[name]
			if !found {
				text := fmt.Sprintf("no VirtualMachine has %s", path[:i+1])
				if near := template.Nearest(name, slices.Sorted(maps.Keys(schema.Properties))); near != "" {
					text += "; did you mean " + near + "?"
				}
				return text
			}
			schema = below
		}
	}
	return ""
}
