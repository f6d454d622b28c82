package template_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/template"
)

func TestMatchHoldsValuesToTheirDeclarations(t *testing.T) {
	hostname := func(parameter, vm string, want ...string) matchCase {
		tc := matchCase{
			spec: `{parameters: [` + parameter + `], virtualMachine: {spec: {template: {spec: {hostname: "x${A}"}}}}}`,
			vm:   `{spec: {template: {spec: {hostname: "x` + vm + `"}}}}`,
		}
		for _, w := range want {
			tc.wantDifferences = append(tc.wantDifferences, "spec.template.spec.hostname: "+w)
		}
		if want == nil {
			tc.wantValues = map[string]string{"A": vm}
		}
		return tc
	}
	testMatch(t, map[string]matchCase{
		"an integer within its bounds":                          hostname(`{name: A, type: int, minimum: -1, maximum: 9}`, "9"),
		"an integer above its maximum":                          hostname(`{name: A, type: int, minimum: -1, maximum: 9}`, "10", `want ${A}, which must be at most 9, got "10"`),
		"an integer below its minimum":                          hostname(`{name: A, type: int, minimum: -1, maximum: 9}`, "-2", `want ${A}, which must be at least -1, got "-2"`),
		"a text that is no integer":                             hostname(`{name: A, type: int}`, "007", `want ${A}, which must be an integer, got "007"`),
		"a text that is no boolean":                             hostname(`{name: A, type: bool}`, "yes", `want ${A}, which must be true or false, got "yes"`),
		"a text that is no base64":                              hostname(`{name: A, type: base64}`, "!", `want ${A}, which must be base64 in the standard encoding, with padding and in one line, got "!"`),
		"a text that the pattern matches":                       hostname(`{name: A, pattern: "[a-z]+"}`, "abc"),
		"a text that only a part of the pattern matches":        hostname(`{name: A, pattern: "[a-z]+"}`, "abc1", `want ${A}, which must match [a-z]+ as a whole, got "abc1"`),
		"a text that the enum lists":                            hostname(`{name: A, enum: [a, b]}`, "b"),
		"a text that the enum does not list":                    hostname(`{name: A, enum: [a, b]}`, "c", `want ${A}, which must be one of "a", "b", got "c"`),
		"an optional parameter of a type may be empty":          hostname(`{name: A, type: int}`, ""),
		"a parameter with a default is empty only if it may be": hostname(`{name: A, type: int, value: "1"}`, "", `want ${A}, which must be an integer, got ""`),
		"a required parameter is not empty":                     hostname(`{name: A, required: true}`, "", `want ${A}, which must not be empty, got ""`),
		"a generated value":                                     hostname(`{name: A, generate: expression, from: 'v-[a-f]{2}[\d]{3}.'}`, "v-af019."),
		"a value that would have been generated shorter": hostname(`{name: A, generate: expression, from: "v-[a-f]{2}"}`, "v-afa",
			`want ${A}, which is generated from v-[a-f]{2} unless it is given, got "v-afa"`),
		"a value that would have been generated of other letters": hostname(`{name: A, generate: expression, from: "v-[a-f]{2}"}`, "v-ag",
			`want ${A}, which is generated from v-[a-f]{2} unless it is given, got "v-ag"`),
		"a value that would have been generated with another beginning": hostname(`{name: A, generate: expression, from: "v-[a-f]{2}"}`, "w-aa",
			`want ${A}, which is generated from v-[a-f]{2} unless it is given, got "w-aa"`),
		"a generated value is not empty": hostname(`{name: A, generate: expression, from: "v-[a-f]{2}"}`, "", `want ${A}, which must not be empty, got ""`),
		"a generator beside a default":   hostname(`{name: A, generate: expression, from: "v-[a-f]{2}", value: x}`, "z"),
		"a value is held to its declaration where it shows first": {
			spec:            `{parameters: [{name: A, type: int}], virtualMachine: {metadata: {labels: {"${A}": x}}, spec: {template: {spec: {hostname: "${A}"}}}}}`,
			vm:              `{metadata: {labels: {a: x}}, spec: {template: {spec: {hostname: a}}}}`,
			wantDifferences: []string{`metadata.labels: want ${A}, which must be an integer, got "a"`},
		},
	})
}

func TestMatchKnowsTheContract(t *testing.T) {
	const (
		generated = `{parameters: [{name: A, generate: expression, from: "v[a-f]{2}", sensitive: true}, {name: B, generate: expression, from: "w[a-f]{2}"}], virtualMachine: {metadata: {name: "${B}"}, spec: {template: {spec: {hostname: "${A}", subdomain: "${B}"}}}}}`
		ambiguous = `{parameters: [{name: A}, {name: B}], virtualMachine: {spec: {template: {spec: {hostname: "${A}-${B}"}}}}}`
		named     = `{parameters: [{name: K}], virtualMachine: {metadata: {name: "web-${K}"}, spec: {template: {spec: {hostname: "${K}"}}}}}`
	)
	testMatch(t, map[string]matchCase{
		"the name binds": {
			spec: named, vm: `{metadata: {name: web-7}, spec: {template: {spec: {hostname: "7"}}}}`,
			wantValues: map[string]string{"K": "7"},
		},
		"the name binds for every place": {
			spec: named, vm: `{metadata: {name: web-7}, spec: {template: {spec: {hostname: "8"}}}}`,
			wantDifferences: []string{`spec.template.spec.hostname: want "7", got "8"`},
		},
		"a name that does not fit is one that somebody chose": {
			spec: named, vm: `{metadata: {name: db-7}, spec: {template: {spec: {hostname: "8"}}}}`,
			wantValues: map[string]string{"K": "8"},
		},
		"a name without placeholders is only a proposal": {
			spec: `{virtualMachine: {metadata: {name: web}}}`, vm: `{metadata: {name: db}}`,
		},
		"a name prefix is only a proposal, but binds what is not known otherwise": {
			spec:       `{parameters: [{name: A}, {name: B}], virtualMachine: {metadata: {generateName: "${A}-${B}-"}, spec: {template: {spec: {hostname: "${B}"}}}}}`,
			vm:         `{metadata: {generateName: x-z-}, spec: {template: {spec: {hostname: z}}}}`,
			wantValues: map[string]string{"A": "x", "B": "z"},
		},
		"a name prefix that does not fit": {
			spec:       `{parameters: [{name: B}], virtualMachine: {metadata: {generateName: "${B}-"}, spec: {template: {spec: {hostname: "${B}"}}}}}`,
			vm:         `{metadata: {generateName: x-}, spec: {template: {spec: {hostname: z}}}}`,
			wantValues: map[string]string{"B": "z"},
		},
		"a namespace that is written out does not matter": {
			spec: `{virtualMachine: {metadata: {namespace: golden}}}`, vm: `{metadata: {namespace: team-a}}`,
		},
		"a namespace that is a parameter does": {
			spec:            `{parameters: [{name: T}], virtualMachine: {metadata: {namespace: "team-${T}", labels: {t: "${T}"}}}}`,
			vm:              `{metadata: {namespace: team-a, labels: {t: b}}}`,
			wantDifferences: []string{`metadata.namespace: want "team-b", got "team-a"`},
		},
		"a namespace that becomes empty does not": {
			spec:       `{parameters: [{name: T}], virtualMachine: {metadata: {namespace: "${T}", labels: {t: "t${T}"}}}}`,
			vm:         `{metadata: {namespace: team-a, labels: {t: t}}}`,
			wantValues: map[string]string{"T": ""},
		},
		"the keys of the contract are not the template's": {
			spec: `{virtualMachine: {metadata: {labels: {vm.kubevirt.io/template: a, vm.kubevirt.io/template.namespace: a, vm.kubevirt.io/template.revision: a},
				annotations: {template.kubevirt.io/rendered: a, template.kubevirt.io/template-ref: a, parameter.template.kubevirt.io/A: a, kubectl.kubernetes.io/last-applied-configuration: a}}}}`,
			vm: `{metadata: {name: x}}`,
		},
		"nor does a key that is a parameter take them": {
			spec:            `{parameters: [{name: A}], virtualMachine: {metadata: {annotations: {"template.kubevirt.io/${A}": x}}}}`,
			vm:              `{metadata: {annotations: {template.kubevirt.io/rendered: x}}}`,
			wantDifferences: []string{`metadata.annotations["template.kubevirt.io/${A}"]: want "x", got nothing`},
		},
		"nor are they part of labels that a parameter gives as a whole": {
			spec:       `{parameters: [{name: A}], virtualMachine: {metadata: {labels: "${{A}}"}}}`,
			vm:         `{metadata: {labels: {a: b, vm.kubevirt.io/template: x}}}`,
			wantValues: map[string]string{"A": `{"a":"b"}`},
		},
		"an annotation says what its parameter shows": {
			spec: ambiguous, vm: `{metadata: {annotations: {parameter.template.kubevirt.io/B: c}}, spec: {template: {spec: {hostname: a-b-c}}}}`,
			wantValues: map[string]string{"A": "a-b", "B": "c"},
		},
		"an annotation that the machine contradicts": {
			spec: ambiguous, vm: `{metadata: {annotations: {parameter.template.kubevirt.io/B: d}}, spec: {template: {spec: {hostname: a-b-c}}}}`,
			wantDifferences: []string{`spec.template.spec.hostname: want "${A}-d", got "a-b-c"`},
		},
		"an annotation for a parameter that shows nowhere, and one for none": {
			spec: `{parameters: [{name: A}], virtualMachine: {}}`,
			vm:   `{metadata: {annotations: {parameter.template.kubevirt.io/A: d, parameter.template.kubevirt.io/B: d}}}`,
		},
		"a generated value may be anything when an annotation gave it": {
			spec: generated, vm: `{metadata: {annotations: {parameter.template.kubevirt.io/A: x, parameter.template.kubevirt.io/B: z}}, spec: {template: {spec: {hostname: x, subdomain: z}}}}`,
			wantValues: map[string]string{"A": "x", "B": "z"},
		},
		"a generated value may be anything when an annotation gave it that was removed": {
			spec: generated, vm: `{metadata: {name: vm, annotations: {template.kubevirt.io/rendered: '{"sensitive":["A"]}'}}, spec: {template: {spec: {hostname: x, subdomain: vm}}}}`,
			wantValues: map[string]string{"A": "x", "B": "vm"},
		},
		"an empty annotation asks for a generated value": {
			spec: generated, vm: `{metadata: {name: vm, annotations: {parameter.template.kubevirt.io/A: ""}}, spec: {template: {spec: {hostname: vab, subdomain: vm}}}}`,
			wantValues: map[string]string{"A": "vab", "B": "vm"},
		},
		"a generated value that nobody gave": {
			spec: generated, vm: `{metadata: {annotations: {template.kubevirt.io/rendered: '{"sensitive":["C"]}'}}, spec: {template: {spec: {hostname: x, subdomain: z}}}}`,
			wantDifferences: []string{`spec.template.spec.hostname: want ${A}, which is generated in another form unless it is given, got (sensitive)`},
		},
	})
}

func TestMatchOfValuesThatCountAsGiven(t *testing.T) {
	const (
		spec = `{parameters: [{name: A, generate: expression, from: "v[a-f]{2}", sensitive: true}, {name: B, value: x, pattern: "[a-z]+"}], virtualMachine: {spec: {template: {spec: {hostname: "${A}", subdomain: "${B}"}}}}}`
		vm   = `{spec: {template: {spec: {hostname: mine, subdomain: other}}}}`
	)
	if found := match(t, spec, vm); found.Matches() {
		t.Error("a value that the template cannot have generated matches")
	}
	found := match(t, spec, vm, template.AsGiven())
	if diff := cmp.Diff(map[string]string{"A": "mine", "B": "other"}, found.Values()); diff != "" || !found.Matches() {
		t.Errorf("%v (-want +got):\n%s", differences(found), diff)
	}
	if found := match(t, spec, `{spec: {template: {spec: {hostname: mine, subdomain: Y}}}}`, template.AsGiven()); found.Matches() {
		t.Error("a value that the declaration does not permit matches")
	}
}
