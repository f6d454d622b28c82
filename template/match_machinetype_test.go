package template_test

import (
	"fmt"
	"testing"
)

func TestMatchKnowsVersionsOfMachineTypes(t *testing.T) {
	const form = `{%sspec: {template: {spec: {domain: {machine: {type: %s}}}}}}`
	machine := func(parameters, template, vm string) matchCase {
		return matchCase{
			spec: `{` + parameters + `virtualMachine: ` + fmt.Sprintf(form, "", template) + `}`,
			vm:   fmt.Sprintf(form, "", vm),
		}
	}
	differs := func(tc matchCase, want, got string) matchCase {
		tc.wantDifferences = []string{fmt.Sprintf("spec.template.spec.domain.machine.type: want %q, got %q", want, got)}
		return tc
	}
	shows := func(tc matchCase, value string) matchCase {
		tc.wantValues = map[string]string{"A": value}
		return tc
	}
	testMatch(t, map[string]matchCase{
		"an alias and its version":                  machine("", "q35", "pc-q35-9.2"),
		"an alias and the version of a distributor": machine("", "q35", "pc-q35-rhel9.6.0"),
		"the alias of another architecture":         machine("", "virt", "virt-9.2"),
		"an alias and the version of another":       differs(machine("", "q35", "pc-i440fx-9.2"), "q35", "pc-i440fx-9.2"),
		"two versions":                              differs(machine("", "pc-q35-9.1", "pc-q35-9.2"), "pc-q35-9.1", "pc-q35-9.2"),
		"a version that became its alias":           differs(machine("", "pc-q35-9.1", "q35"), "pc-q35-9.1", "q35"),
		"a parameter that may be the alias only":    shows(machine(`parameters: [{name: A, enum: [q35, virt]}], `, `"${A}"`, "pc-q35-9.2"), "q35"),
		"a parameter whose default is the alias":    shows(machine(`parameters: [{name: A, value: q35}], `, `"${A}"`, "pc-q35-9.2"), "q35"),
		"a parameter whose default is the version":  shows(machine(`parameters: [{name: A, value: pc-q35-9.2}], `, `"${A}"`, "pc-q35-9.2"), "pc-q35-9.2"),
		"a parameter that was given as the alias": {
			spec:       `{parameters: [{name: A}], virtualMachine: ` + fmt.Sprintf(form, "", `"${A}"`) + `}`,
			vm:         fmt.Sprintf(form, `metadata: {annotations: {parameter.template.kubevirt.io/A: q35}}, `, "pc-q35-9.2"),
			wantValues: map[string]string{"A": "q35"},
		},
		"another difference is still one": {
			spec:            `{virtualMachine: {spec: {template: {spec: {hostname: a, domain: {machine: {type: q35}}}}}}}`,
			vm:              `{spec: {template: {spec: {hostname: b, domain: {machine: {type: pc-q35-9.2}}}}}}`,
			wantDifferences: []string{`spec.template.spec.hostname: want "a", got "b"`},
		},
	})
}
