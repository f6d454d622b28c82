package template_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/template"
)

// vmOf reads a VirtualMachine from YAML. Its numbers keep their digits.
func vmOf(tb testing.TB, document string) map[string]any {
	tb.Helper()
	encoded, err := yaml.YAMLToJSONStrict([]byte(document))
	if err != nil {
		tb.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	var vm map[string]any
	if err := decoder.Decode(&vm); err != nil {
		tb.Fatal(err)
	}
	return vm
}

// match compares a VirtualMachine with the spec of a template, both in YAML.
func match(tb testing.TB, spec, vm string, options ...template.MatchOption) *template.Match {
	tb.Helper()
	found, err := compile(tb, spec).Match(vmOf(tb, vm), options...)
	if err != nil {
		tb.Fatal(err)
	}
	return found
}

// differences spells the differences, one a line.
func differences(found *template.Match) []string {
	var all []string
	for _, d := range found.Differences() {
		all = append(all, fmt.Sprintf("%s: want %s, got %s", d.Path, d.Want, d.Got))
	}
	return all
}

// matchCase is a comparison and what it finds. The values are not compared when
// there are differences.
type matchCase struct {
	spec, vm        string
	wantValues      map[string]string
	wantDifferences []string
}

func testMatch(t *testing.T, cases map[string]matchCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found := match(t, tc.spec, tc.vm)
			if diff := cmp.Diff(tc.wantDifferences, differences(found)); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			if found.Matches() != (tc.wantDifferences == nil) {
				t.Errorf("Matches: got %v", found.Matches())
			}
			if tc.wantDifferences != nil {
				return
			}
			if tc.wantValues == nil {
				tc.wantValues = map[string]string{}
			}
			if diff := cmp.Diff(tc.wantValues, found.Values()); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMatchReadsTexts(t *testing.T) {
	testMatch(t, map[string]matchCase{
		"a placeholder that is the whole text takes it all": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "${A}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "a ${A} b"}}}}`,
			wantValues: map[string]string{"A": "a ${A} b"},
		},
		"text around a placeholder is not part of the value": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "x-${A}-y"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "x-x--y-y"}}}}`,
			wantValues: map[string]string{"A": "x--y"},
		},
		"a value may be empty when the parameter is optional": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "x${A}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "x"}}}}`,
			wantValues: map[string]string{"A": ""},
		},
		"other text is a difference": {
			spec:            `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "x-${A}-y"}}}}}`,
			vm:              `{spec: {template: {spec: {hostname: "x-y"}}}}`,
			wantDifferences: []string{`spec.template.spec.hostname: want "x-${A}-y", got "x-y"`},
		},
		"a parameter that occurs twice in one text has one value": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "${A}-${A}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "a-b-a-b"}}}}`,
			wantValues: map[string]string{"A": "a-b"},
		},
		"a parameter that occurs twice in one text with two values is a difference": {
			spec:            `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "${A}-${A}"}}}}}`,
			vm:              `{spec: {template: {spec: {hostname: "ab-ac"}}}}`,
			wantDifferences: []string{`spec.template.spec.hostname: want "${A}-${A}", got "ab-ac"`},
		},
		"a parameter that occurs in two places has one value": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "${A}", subdomain: "x${A}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: a, subdomain: xa}}}}`,
			wantValues: map[string]string{"A": "a"},
		},
		"the second place with another value is a difference": {
			spec:            `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "${A}", subdomain: "x${A}"}}}}}`,
			vm:              `{spec: {template: {spec: {hostname: a, subdomain: xb}}}}`,
			wantDifferences: []string{`spec.template.spec.subdomain: want "xa", got "xb"`},
		},
		"placeholders side by side take as little as they can from left to right": {
			spec:       `{parameters: [{name: A}, {name: B}, {name: C}], virtualMachine: {spec: {template: {spec: {hostname: "${A}${B}-${C}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "éabc-d-e"}}}}`,
			wantValues: map[string]string{"A": "é", "B": "abc", "C": "d-e"},
		},
		"a value that shows alone elsewhere says where the others begin": {
			spec:       `{parameters: [{name: A}, {name: B}], virtualMachine: {spec: {template: {spec: {hostname: "${A}-${B}", subdomain: "${A}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "a-b-c", subdomain: a-b}}}}`,
			wantValues: map[string]string{"A": "a-b", "B": "c"},
		},
		"values that show only beside each other are found together": {
			spec:       `{parameters: [{name: A}, {name: B}], virtualMachine: {spec: {template: {spec: {hostname: "${A}-${B}", subdomain: "${A}.${B}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "a-b-c-d", subdomain: "a-b-c.d"}}}}`,
			wantValues: map[string]string{"A": "a-b-c", "B": "d"},
		},
		"what the declarations take says where the values end": {
			spec: `{parameters: [{name: A}, {name: B, generate: expression, from: "[a-z]{3}"}, {name: C, type: int}],
				virtualMachine: {spec: {template: {spec: {hostname: "${A}-${B}${C}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "web-one-abc17"}}}}`,
			wantValues: map[string]string{"A": "web-one", "B": "abc", "C": "17"},
		},
		"texts that cannot agree are a difference where the second contradicts the first": {
			spec:            `{parameters: [{name: A}, {name: B}], virtualMachine: {spec: {template: {spec: {hostname: "${A}-${B}", subdomain: "${B}+${A}"}}}}}`,
			vm:              `{spec: {template: {spec: {hostname: "a-b", subdomain: "a+b"}}}}`,
			wantDifferences: []string{`spec.template.spec.subdomain: want "b+a", got "a+b"`},
		},
		"an escaped placeholder is the text that it makes": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "$${A}${A}$${HOME}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "${A}x${HOME}"}}}}`,
			wantValues: map[string]string{"A": "x"},
		},
		"a reference that is kept is text": {
			spec:            `{undefinedReferences: Keep, parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "${A}${HOME}", subdomain: "${HOME}"}}}}}`,
			vm:              `{spec: {template: {spec: {hostname: "x${HOME}", subdomain: "/root"}}}}`,
			wantDifferences: []string{`spec.template.spec.subdomain: want "${HOME}", got "/root"`},
		},
		"a long text with what JSON escapes": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "#\n\t\"\\${A}\u0001\r\n"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "#\n\t\"\\\"\n\u0001\r\n"}}}}`,
			wantValues: map[string]string{"A": "\"\n"},
		},
		"something else than text is a difference": {
			spec:            `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "${A}", subdomain: x}}}}}`,
			vm:              `{spec: {template: {spec: {hostname: {a: b}, subdomain: 1}}}}`,
			wantDifferences: []string{`spec.template.spec.hostname: want "${A}", got an object`, `spec.template.spec.subdomain: want "x", got 1`},
		},
		"a parameter that shows nowhere has no value": {
			spec: `{message: "${A}", parameters: [{name: A, value: x}, {name: B, required: true}], virtualMachine: {}}`,
			vm:   `{}`,
		},
		"a default is no constraint": {
			spec:       `{parameters: [{name: A, value: x}], virtualMachine: {spec: {template: {spec: {hostname: "${A}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: z}}}}`,
			wantValues: map[string]string{"A": "z"},
		},
	})
}

func TestMatchReadsWholeValues(t *testing.T) {
	const cores = `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {domain: {cpu: {cores: "${{A}}", sockets: 1}}}}}}}`
	testMatch(t, map[string]matchCase{
		"an integer": {
			spec: cores, vm: `{spec: {template: {spec: {domain: {cpu: {cores: 4, sockets: 1}}}}}}`,
			wantValues: map[string]string{"A": "4"},
		},
		"an integer keeps every digit": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {terminationGracePeriodSeconds: "${{A}}"}}}}}`,
			vm:         `{spec: {template: {spec: {terminationGracePeriodSeconds: 9007199254740993}}}}`,
			wantValues: map[string]string{"A": "9007199254740993"},
		},
		"an integer as text is compared digit by digit": {
			spec:            `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "${A}", terminationGracePeriodSeconds: "${{A}}"}}}}}`,
			vm:              `{spec: {template: {spec: {hostname: "9007199254740992", terminationGracePeriodSeconds: 9007199254740993}}}}`,
			wantDifferences: []string{`spec.template.spec.terminationGracePeriodSeconds: want 9007199254740992, got 9007199254740993`},
		},
		"true and false": {
			spec:       `{parameters: [{name: A}, {name: B}], virtualMachine: {spec: {running: "${{A}}", template: {spec: {domain: {cpu: {dedicatedCpuPlacement: "${{B}}"}}}}}}}`,
			vm:         `{spec: {running: true, template: {spec: {domain: {cpu: {dedicatedCpuPlacement: false}}}}}}`,
			wantValues: map[string]string{"A": "true", "B": "false"},
		},
		"a text needs no quotes": {
			spec:       `{parameters: [{name: A}, {name: B}], virtualMachine: {spec: {template: {spec: {hostname: "${{A}}", subdomain: "${{B}}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: web, subdomain: "7"}}}}`,
			wantValues: map[string]string{"A": "web", "B": `"7"`},
		},
		"a text may have quotes when it shows elsewhere with them": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "${{A}}", subdomain: "${A}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: web, subdomain: '"web"'}}}}`,
			wantValues: map[string]string{"A": `"web"`},
		},
		"a list": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {networks: "${{A}}"}}}}}`,
			vm:         `{spec: {template: {spec: {networks: [{pod: {}, name: default}]}}}}`,
			wantValues: map[string]string{"A": `[{"name":"default","pod":{}}]`},
		},
		"a list that shows elsewhere in another spelling": {
			spec:       `{parameters: [{name: A}], virtualMachine: {metadata: {annotations: {a: "${A}"}}, spec: {template: {spec: {networks: "${{A}}"}}}}}`,
			vm:         `{metadata: {annotations: {a: '[ {"pod": {}, "name": "default"} ]'}}, spec: {template: {spec: {networks: [{pod: {}, name: default}]}}}}`,
			wantValues: map[string]string{"A": `[ {"pod": {}, "name": "default"} ]`},
		},
		"what a cluster adds to one of two objects is no difference": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {domain: {cpu: "${{A}}"}, networks: [{name: a, multus: "${{A}}"}, {name: b, multus: "${{A}}"}]}}}}}`,
			vm:         `{spec: {template: {spec: {domain: {cpu: {networkName: x, cores: 1}}, networks: [{name: a, multus: {networkName: x, default: true}}, {name: b, multus: {networkName: x}}]}}}}`,
			wantValues: map[string]string{"A": `{"networkName":"x"}`},
		},
		"a difference within an object is named with its place": {
			spec:            `{parameters: [{name: A}], virtualMachine: {metadata: {annotations: {a: "${A}"}}, spec: {template: {spec: {networks: "${{A}}"}}}}}`,
			vm:              `{metadata: {annotations: {a: '[{"name":"a","multus":{"networkName":"x"}}]'}}, spec: {template: {spec: {networks: [{name: a, multus: {networkName: z}}]}}}}`,
			wantDifferences: []string{`spec.template.spec.networks[name=a].multus.networkName: want "x", got "z"`},
		},
		"an object that cannot be is a difference as a whole": {
			spec:            `{parameters: [{name: A}], virtualMachine: {metadata: {annotations: {a: "${A}"}}, spec: {template: {spec: {networks: "${{A}}"}}}}}`,
			vm:              `{metadata: {annotations: {a: '[{'}}, spec: {template: {spec: {networks: [{name: a}]}}}}`,
			wantDifferences: []string{`spec.template.spec.networks: want [{, got a list`},
		},
		"a member that an empty parameter leaves out is not there": {
			spec: cores, vm: `{spec: {template: {spec: {domain: {cpu: {sockets: 1}}}}}}`,
			wantValues: map[string]string{"A": ""},
		},
		"a member that must be there is missed": {
			spec:            strings.Replace(cores, "name: A", "name: A, type: int, minimum: 1, required: true", 1),
			vm:              `{spec: {template: {spec: {domain: {cpu: {sockets: 1}}}}}}`,
			wantDifferences: []string{`spec.template.spec.domain.cpu.cores: want ${A}, which must be at least 1, got "0"`},
		},
		"beside what an empty parameter leaves out there may be anything": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "x${A}", domain: {cpu: {cores: "${{A}}"}}}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: x, domain: {cpu: {cores: 1}}}}}}`,
			wantValues: map[string]string{"A": ""},
		},
		"an integer that the types of KubeVirt drop, because it is 0": {
			spec:       `{parameters: [{name: A, required: true, type: int}], virtualMachine: {spec: {template: {spec: {hostname: "x${A}", domain: {cpu: {cores: "${{A}}"}}}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: x0, domain: {cpu: {}}}}}}`,
			wantValues: map[string]string{"A": "0"},
		},
		"the values that an enum lists are tried as they are written": {
			spec:       `{parameters: [{name: A, enum: ['{"networkName": "a"}', '{"networkName":  "b"}']}], virtualMachine: {spec: {template: {spec: {networks: [{name: m, multus: "${{A}}"}]}}}}}`,
			vm:         `{spec: {template: {spec: {networks: [{name: m, multus: {networkName: b, default: true}}]}}}}`,
			wantValues: map[string]string{"A": `{"networkName":  "b"}`},
		},
	})
}

func TestMatchComparesLeaves(t *testing.T) {
	guest := func(template, vm string) matchCase {
		const form = `{spec: {template: {spec: {domain: {memory: {guest: %s}}}}}}`
		return matchCase{
			spec: `{parameters: [{name: A}, {name: I, type: int}], virtualMachine: ` + fmt.Sprintf(form, template) + `}`,
			vm:   fmt.Sprintf(form, vm),
		}
	}
	bound := func(tc matchCase, values map[string]string) matchCase {
		tc.wantValues = values
		return tc
	}
	other := func(tc matchCase, want, got string) matchCase {
		tc.wantDifferences = []string{fmt.Sprintf("spec.template.spec.domain.memory.guest: want %s, got %s", want, got)}
		return tc
	}
	testMatch(t, map[string]matchCase{
		"quantities of one value in two units":                              guest("1024Mi", "1Gi"),
		"quantities as a number and as text":                                guest("1073741824", "1Gi"),
		"quantities with a fraction and an exponent":                        guest("1.5e3", "1500"),
		"quantities of two values":                                          other(guest("1024Mi", "1G"), `"1024Mi"`, `"1G"`),
		"something that is no quantity":                                     other(guest("1Gi", "much"), `"1Gi"`, `"much"`),
		"a quantity with an exponent that would take years":                 other(guest("1Gi", `"1e-999999999"`), `"1Gi"`, `"1e-999999999"`),
		"a placeholder in a quantity":                                       bound(guest(`"${A}Gi"`, "4Gi"), map[string]string{"A": "4"}),
		"a placeholder in a quantity that is now spelt in another unit":     bound(guest(`"${A}Mi"`, "2Gi"), map[string]string{"A": "2048"}),
		"a placeholder in a quantity with a fraction":                       bound(guest(`"${A}.5Gi"`, "1536Mi"), map[string]string{"A": "1"}),
		"a number in place of a unit":                                       bound(guest(`"${I}"`, "1Gi"), map[string]string{"I": "1073741824"}),
		"a whole quantity":                                                  bound(guest(`"${{A}}"`, "1Gi"), map[string]string{"A": "1Gi"}),
		"a whole quantity that is a number":                                 bound(guest(`"${{I}}"`, "1Gi"), map[string]string{"I": "1073741824"}),
		"a placeholder in a quantity that never becomes this one":           other(guest(`"${A}Zi"`, "1Gi"), `"${A}Zi"`, `"1Gi"`),
		"a unit is not looked at where the field is no quantity":            {spec: `{virtualMachine: {spec: {template: {spec: {hostname: 1024Mi}}}}}`, vm: `{spec: {template: {spec: {hostname: 1Gi}}}}`, wantDifferences: []string{`spec.template.spec.hostname: want "1024Mi", got "1Gi"`}},
		"one quantity in two spellings of one parameter":                    {spec: `{parameters: [{name: A}], virtualMachine: {metadata: {labels: {m: "${A}"}}, spec: {template: {spec: {domain: {memory: {guest: "${A}Mi"}}}}}}}`, vm: `{metadata: {labels: {m: "2048"}}, spec: {template: {spec: {domain: {memory: {guest: 2Gi}}}}}}`, wantValues: map[string]string{"A": "2048"}},
		"an enum whose values are spelt in another way":                     {spec: `{parameters: [{name: A, enum: [1024Mi, 2048Mi]}], virtualMachine: {spec: {template: {spec: {domain: {memory: {guest: "${A}"}}}}}}}`, vm: `{spec: {template: {spec: {domain: {memory: {guest: 2Gi}}}}}}`, wantValues: map[string]string{"A": "2048Mi"}},
		"an integer that may be text":                                       {spec: `{virtualMachine: {spec: {template: {spec: {readinessProbe: {httpGet: {port: 80}}, livenessProbe: {httpGet: {port: "http"}}}}}}}`, vm: `{spec: {template: {spec: {readinessProbe: {httpGet: {port: "80"}}, livenessProbe: {httpGet: {port: http}}}}}}`},
		"a placeholder for an integer that may be text":                     {spec: `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {readinessProbe: {httpGet: {port: "${A}"}}, livenessProbe: {httpGet: {port: "${{A}}"}}}}}}}`, vm: `{spec: {template: {spec: {readinessProbe: {httpGet: {port: 80}}, livenessProbe: {httpGet: {port: 80}}}}}}`, wantValues: map[string]string{"A": "80"}},
		"a time in another zone":                                            {spec: `{virtualMachine: {spec: {dataVolumeTemplates: [{metadata: {creationTimestamp: "2026-05-04T10:00:00+02:00", name: x}}]}}}`, vm: `{spec: {dataVolumeTemplates: [{metadata: {creationTimestamp: "2026-05-04T08:00:00Z", name: x}}]}}`},
		"numbers are compared by value":                                     {spec: `{virtualMachine: {spec: {dataVolumeTemplates: [{metadata: {managedFields: [{fieldsV1: {a: 1.10, b: 1e2, c: 18446744073709551616, d: 9007199254740993}}]}}]}}}`, vm: `{spec: {dataVolumeTemplates: [{metadata: {managedFields: [{fieldsV1: {a: 1.1, b: 100, c: 18446744073709552000, d: 9007199254740993}}]}}]}}`},
		"integers that a float would not tell apart":                        {spec: `{virtualMachine: {spec: {template: {spec: {terminationGracePeriodSeconds: 9007199254740993}}}}}`, vm: `{spec: {template: {spec: {terminationGracePeriodSeconds: 9007199254740992}}}}`, wantDifferences: []string{`spec.template.spec.terminationGracePeriodSeconds: want 9007199254740993, got 9007199254740992`}},
		"null, nothing and what is empty are the same":                      {spec: `{virtualMachine: {metadata: {labels: {}}, spec: {template: {spec: {nodeSelector: {}, networks: [], tolerations: [], domain: {resources: {}, devices: {}}}}}}}`, vm: `{metadata: {labels: null}, spec: {template: {spec: {tolerations: null, domain: {devices: {disks: null}}}}}}`},
		"a value that the types of KubeVirt drop is the same as none":       {spec: `{virtualMachine: {spec: {template: {spec: {hostname: "", domain: {cpu: {cores: 0, model: x, isolateEmulatorThread: false}}}}}}}`, vm: `{spec: {template: {spec: {domain: {cpu: {model: x}}}}}}`},
		"a value that the types of KubeVirt keep is not the same as none":   {spec: `{virtualMachine: {metadata: {labels: {a: ""}}, spec: {running: false, template: {spec: {terminationGracePeriodSeconds: 0}}}}}`, vm: `{}`, wantDifferences: []string{`metadata.labels.a: want "", got nothing`, `spec.running: want false, got nothing`, `spec.template: want an object, got nothing`}},
		"an object whose presence says something is not the same as none":   {spec: `{virtualMachine: {spec: {template: {spec: {networks: [{name: a, pod: {}}], domain: {devices: {interfaces: [{name: a, masquerade: {}}], rng: {}}}}}}}}`, vm: `{spec: {template: {spec: {networks: [{name: a, multus: {networkName: x}}], domain: {devices: {interfaces: [{name: a, bridge: {}}], rng: null}}}}}}`, wantDifferences: []string{`spec.template.spec.domain.devices.interfaces[name=a].masquerade: want an object, got nothing`, `spec.template.spec.domain.devices.rng: want an object, got nothing`, `spec.template.spec.networks[name=a].pod: want an object, got nothing`}},
		"every place that differs is reported":                              {spec: `{virtualMachine: {metadata: {labels: {"a.b/c": x}}, spec: {runStrategy: Halted, template: {spec: {domain: {cpu: {cores: 1}}}}}}}`, vm: `{metadata: {labels: [x]}, spec: {runStrategy: Always, template: {spec: {domain: {cpu: {cores: 2}}}}}}`, wantDifferences: []string{`metadata.labels: want an object, got a list`, `spec.runStrategy: want "Halted", got "Always"`, `spec.template.spec.domain.cpu.cores: want 1, got 2`}},
		"a key that is no word is in quotes":                                {spec: `{virtualMachine: {metadata: {labels: {"a.b/c": x}}}}`, vm: `{metadata: {labels: {"a.b/c": z}}}`, wantDifferences: []string{`metadata.labels["a.b/c"]: want "x", got "z"`}},
		"what the virtual machine has beyond the template is no difference": {spec: `{virtualMachine: {metadata: {labels: {a: b}}, spec: {runStrategy: Halted}}}`, vm: `{metadata: {uid: x, labels: {a: b, c: d}, finalizers: [x]}, spec: {runStrategy: Halted, template: {spec: {domain: {}}}}, status: {ready: true}}`},
		"what the template has at another version of the API is the same":   {spec: `{virtualMachine: {}}`, vm: `{apiVersion: kubevirt.io/v1alpha3, kind: VirtualMachine}`},
		"another kind is a difference":                                      {spec: `{virtualMachine: {}}`, vm: `{apiVersion: v1, kind: Pod}`, wantDifferences: []string{`apiVersion: want "kubevirt.io/v1", got "v1"`, `kind: want "VirtualMachine", got "Pod"`}},
		"labels of the template are on the machine and on what it starts":   {spec: `{objectLabels: {a: b, "${A}": c}, parameters: [{name: A}], virtualMachine: {}}`, vm: `{metadata: {labels: {a: b, x: c}}, spec: {template: {metadata: {labels: {x: c}}}}}`, wantDifferences: []string{`spec.template.metadata.labels.a: want "b", got nothing`}},
	})
}

func TestMatchFindsKeys(t *testing.T) {
	testMatch(t, map[string]matchCase{
		"a key whose parameter shows elsewhere": {
			spec:       `{parameters: [{name: T}], virtualMachine: {metadata: {labels: {"${T}/tier": front, team: "${T}"}}}}`,
			vm:         `{metadata: {labels: {shop/tier: front, bank/tier: front, team: shop}}}`,
			wantValues: map[string]string{"T": "shop"},
		},
		"a key whose parameter shows nowhere else": {
			spec:       `{parameters: [{name: T}], virtualMachine: {metadata: {labels: {"${T}/tier": front}}}}`,
			vm:         `{metadata: {labels: {shop/tier: back, bank/tier: front, a: front}}}`,
			wantValues: map[string]string{"T": "bank"},
		},
		"keys that exchange their values": {
			spec:       `{parameters: [{name: A}, {name: B}], virtualMachine: {metadata: {labels: {"x${A}": "${B}", "x${B}": "${A}"}}}}`,
			vm:         `{metadata: {labels: {xa: b, xb: a, xc: c, d: d}}}`,
			wantValues: map[string]string{"A": "a", "B": "b"},
		},
		"a key that is not there": {
			spec:            `{parameters: [{name: T}], virtualMachine: {metadata: {labels: {"${T}/tier": front}}}}`,
			vm:              `{metadata: {labels: {shop/tier: back}}}`,
			wantDifferences: []string{`metadata.labels["${T}/tier"]: want "front", got nothing`},
		},
		"a key that is known and not there": {
			spec:            `{parameters: [{name: T}], virtualMachine: {metadata: {labels: {"${T}/tier": front, t: "${T}"}}}}`,
			vm:              `{metadata: {labels: {bank/tier: front, t: shop}}}`,
			wantDifferences: []string{`metadata.labels["shop/tier"]: want "front", got nothing`},
		},
		"a key that is that of another member": {
			spec:            `{parameters: [{name: T}], virtualMachine: {metadata: {labels: {"${T}": x, t: "${T}"}}}}`,
			vm:              `{metadata: {labels: {t: t}}}`,
			wantDifferences: []string{`metadata.labels.t: want "x", got nothing`},
		},
		"a key that is left out with its value": {
			spec:       `{parameters: [{name: T}, {name: V}], virtualMachine: {metadata: {labels: {"${T}": "${{V}}"}}}}`,
			vm:         `{metadata: {name: x}}`,
			wantValues: map[string]string{"V": ""},
		},
		"a field whose name is a parameter": {
			spec:       `{parameters: [{name: T}], virtualMachine: {spec: {template: {spec: {hostname: "${T}", domain: {"${T}": {guest: 1024Mi}}}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: memory, domain: {memory: {guest: 1Gi}}}}}}`,
			wantValues: map[string]string{"T": "memory"},
		},
	})
}

func TestMatchComparesLists(t *testing.T) {
	const volumes = `{parameters: [{name: A}, {name: B}], virtualMachine: {spec: {template: {spec: {volumes: [%s]}}}}}`
	const tolerations = `{parameters: [{name: A}, {name: B}], virtualMachine: {spec: {template: {spec: {tolerations: [%s]}}}}}`
	named := func(template, vm string) matchCase {
		return matchCase{spec: fmt.Sprintf(volumes, template), vm: `{spec: {template: {spec: {volumes: [` + vm + `]}}}}`}
	}
	ordered := func(template, vm string) matchCase {
		return matchCase{spec: fmt.Sprintf(tolerations, template), vm: `{spec: {template: {spec: {tolerations: [` + vm + `]}}}}`}
	}
	bound := func(tc matchCase, values map[string]string) matchCase {
		tc.wantValues = values
		return tc
	}
	other := func(tc matchCase, differences ...string) matchCase {
		tc.wantDifferences = differences
		return tc
	}
	testMatch(t, map[string]matchCase{
		"items with names match by name, in any order, among others": named(
			`{name: a, containerDisk: {image: x}}, {name: b, containerDisk: {image: z}}`,
			`{name: c}, {name: b, containerDisk: {image: z}}, {name: a, containerDisk: {image: x}}`),
		"an item that is not there": other(named(`{name: a, containerDisk: {image: x}}, {name: b}`, `{name: a, containerDisk: {image: x}}`),
			`spec.template.spec.volumes[name=b]: want an object, got nothing`),
		"an item that differs": other(named(`{name: a, containerDisk: {image: x}}`, `{name: b}, {name: a, containerDisk: {image: z}}`),
			`spec.template.spec.volumes[name=a].containerDisk.image: want "x", got "z"`),
		"items are missing where there is no list": {
			spec: fmt.Sprintf(volumes, `{name: a}`), vm: `{spec: {template: {spec: {volumes: null}}}}`,
			wantDifferences: []string{`spec.template.spec.volumes[name=a]: want an object, got nothing`},
		},
		"something else than a list": {
			spec: fmt.Sprintf(volumes, `{name: a}`), vm: `{spec: {template: {spec: {volumes: {a: b}}}}}`,
			wantDifferences: []string{`spec.template.spec.volumes: want a list, got an object`},
		},
		"two items of one name match by position": other(named(`{name: a}, {name: b}`, `{name: a}, {name: b}, {name: b}`),
			`spec.template.spec.volumes[2]: want nothing, got an object`),
		"an item whose name is a parameter that shows elsewhere": bound(named(
			`{name: "${A}", containerDisk: {image: x}}, {name: b, containerDisk: {image: "${A}"}}`,
			`{name: b, containerDisk: {image: q}}, {name: p, containerDisk: {image: x}}, {name: q, containerDisk: {image: x}}`),
			map[string]string{"A": "q"}),
		"an item whose name is a parameter that shows nowhere else": bound(named(
			`{name: b}, {name: "x${A}", containerDisk: {image: x}}`,
			`{name: b, containerDisk: {image: x}}, {name: z, containerDisk: {image: x}}, {name: xy, containerDisk: {image: x}}`),
			map[string]string{"A": "y"}),
		"no item has a name that fits": other(named(`{name: b}, {name: "x${A}"}`, `{name: b}, {name: z}`),
			`spec.template.spec.volumes: want an item with the name "x${A}", got nothing`),
		"an item that a parameter gives": bound(named(`{name: a}, "${{A}}", {name: b}`, `{name: a}, {name: x, containerDisk: {image: z}}, {name: b}`),
			map[string]string{"A": `{"containerDisk":{"image":"z"},"name":"x"}`}),
		"an item that an empty parameter leaves out": bound(named(`{name: a}, "${{A}}"`, `{name: a}`), map[string]string{"A": ""}),
		"of two items that may be left out, the one in its place is there": bound(named(`"${{A}}", {name: a}, "${{B}}"`, `{name: a}, {name: x}`),
			map[string]string{"A": "", "B": `{"name":"x"}`}),
		"items without names match by position": bound(ordered(`{key: a}, {key: "${A}"}`, `{key: a, effect: x}, {key: b}`), map[string]string{"A": "b"}),
		"an item too many without a name": other(ordered(`{key: a}`, `{key: a}, {key: b}`),
			`spec.template.spec.tolerations[1]: want nothing, got an object`),
		"an item too few without a name": other(ordered(`{key: a}, {key: b}`, `{key: a}`),
			`spec.template.spec.tolerations[1]: want an object, got nothing`),
		"items without names in another order": other(ordered(`{key: a}, {key: b}`, `{key: b}, {key: a}`),
			`spec.template.spec.tolerations[0].key: want "a", got "b"`, `spec.template.spec.tolerations[1].key: want "b", got "a"`),
		"an item without a name that is left out":       bound(ordered(`{key: a}, "${{A}}", {key: b}`, `{key: a}, {key: b}`), map[string]string{"A": ""}),
		"an item without a name that a parameter gives": bound(ordered(`{key: a}, "${{A}}", {key: b}`, `{key: a}, {key: c}, {key: b}`), map[string]string{"A": `{"key":"c"}`}),
		"of two items without names that may be left out, the others say which one is there": bound(ordered(`"${{A}}", {key: a}, "${{B}}"`, `{key: a}, {key: b}`),
			map[string]string{"A": "", "B": `{"key":"b"}`}),
		"an item that a parameter gives with a name that it has elsewhere": {
			spec:       `{parameters: [{name: A}], virtualMachine: {metadata: {annotations: {a: "${A}"}}, spec: {template: {spec: {volumes: [{name: a}, "${{A}}"]}}}}}`,
			vm:         `{metadata: {annotations: {a: '{"name": "c"}'}}, spec: {template: {spec: {volumes: [{name: a}, {name: b}, {name: c, containerDisk: {image: x}}]}}}}`,
			wantValues: map[string]string{"A": `{"name": "c"}`},
		},
	})
}

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

func TestMatchIgnoring(t *testing.T) {
	const spec = `
parameters: [{name: A}]
virtualMachine:
  metadata: {labels: {a: b, "${A}.x": z}}
  spec:
    runStrategy: Halted
    template:
      spec:
        hostname: ${A}
        networks: [{name: a, multus: {networkName: m}}]
        tolerations: [{key: k}]
        domain: {cpu: {cores: "${{A}}"}}
`
	const vm = `{metadata: {labels: {a: c}}, spec: {runStrategy: Always, template: {spec: {hostname: x, networks: [{name: a, multus: {networkName: o}}], tolerations: [{key: l}, {key: m}], domain: {cpu: {cores: 2}}}}}}`
	asked := map[string]bool{}
	found := match(t, spec, vm, template.Ignoring(func(path ...string) bool {
		asked[strings.Join(path, " ")] = true
		return false
	}))
	want := []string{
		`metadata labels a`, `metadata labels x.x`, `spec runStrategy`, `spec template spec domain cpu cores`, `spec template spec hostname`,
		`spec template spec networks [name=a] multus networkName`, `spec template spec tolerations [0] key`, `spec template spec tolerations [1]`,
	}
	got := make([]string, 0, len(asked))
	for path := range asked {
		got = append(got, path)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("asked about (-want +got):\n%s", diff)
	}
	if found.Matches() {
		t.Error("with nothing ignored it matches")
	}

	for name, tc := range map[string]struct {
		ignored         []string
		wantDifferences int
		wantValues      map[string]string
	}{
		"what is ignored is no difference": {
			ignored: []string{`spec runStrategy`, `metadata labels a`}, wantDifferences: 5, wantValues: map[string]string{"A": "x"},
		},
		"what is ignored binds nothing": {
			ignored: []string{`spec template spec hostname`}, wantDifferences: 6, wantValues: map[string]string{"A": "2"},
		},
		"an item too many is ignored by its place": {
			ignored: []string{`spec template spec tolerations [1]`}, wantDifferences: 6, wantValues: map[string]string{"A": "x"},
		},
		"everything is ignored": {
			ignored: []string{""}, wantDifferences: 0, wantValues: map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := match(t, spec, vm, template.Ignoring(func(path ...string) bool {
				return slices.ContainsFunc(tc.ignored, func(prefix string) bool { return strings.HasPrefix(strings.Join(path, " "), prefix) })
			}))
			if len(found.Differences()) != tc.wantDifferences {
				t.Errorf("got %d differences, want %d: %v", len(found.Differences()), tc.wantDifferences, differences(found))
			}
			if diff := cmp.Diff(tc.wantValues, found.Values()); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMatchShowsNoSecrets(t *testing.T) {
	const secret = "hunter2-hunter2"
	for name, tc := range map[string]struct {
		spec, vm string
		want     []string
	}{
		"a text that differs": {
			spec: `{parameters: [{name: A, sensitive: true}], virtualMachine: {spec: {template: {spec: {hostname: "${A}", subdomain: "x${A}"}}}}}`,
			vm:   `{spec: {template: {spec: {hostname: hunter2-hunter2, subdomain: "y hunter2-hunter2"}}}}`,
			want: []string{`spec.template.spec.subdomain: want (sensitive), got (sensitive)`},
		},
		"a value that its parameter does not take": {
			spec: `{parameters: [{name: A, sensitive: true, enum: [a, b]}], virtualMachine: {spec: {template: {spec: {hostname: "${A}"}}}}}`,
			vm:   `{spec: {template: {spec: {hostname: hunter2-hunter2}}}}`,
			want: []string{`spec.template.spec.hostname: want ${A}, which must be one of the values that the template lists, got (sensitive)`},
		},
		"an object that differs": {
			spec: `{parameters: [{name: A, sensitive: true}], virtualMachine: {metadata: {annotations: {a: "${A}"}}, spec: {template: {spec: {nodeSelector: "${{A}}"}}}}}`,
			vm:   `{metadata: {annotations: {a: '{"hunter2-hunter2": "x"}'}}, spec: {template: {spec: {nodeSelector: {hunter2-hunter2: z}}}}}`,
			want: []string{`spec.template.spec.nodeSelector: want (sensitive), got (sensitive)`},
		},
		"a key": {
			spec: `{parameters: [{name: A, sensitive: true}], virtualMachine: {metadata: {labels: {"${A}": x}, annotations: {a: "${A}"}}}}`,
			vm:   `{metadata: {labels: {hunter2-hunter2: z}, annotations: {a: hunter2-hunter2}}}`,
			want: []string{`metadata.labels["${A}"]: want "x", got "z"`},
		},
		"the name of an item": {
			spec: `{parameters: [{name: A, sensitive: true}], virtualMachine: {metadata: {annotations: {a: "${A}"}}, spec: {template: {spec: {volumes: [{name: "${A}", containerDisk: {image: x}}]}}}}}`,
			vm:   `{metadata: {annotations: {a: hunter2-hunter2}}, spec: {template: {spec: {volumes: [{name: hunter2-hunter2, containerDisk: {image: z}}]}}}}`,
			want: []string{`spec.template.spec.volumes[name="(sensitive)"].containerDisk.image: want "x", got "z"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := differences(match(t, tc.spec, tc.vm))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			if strings.Contains(fmt.Sprint(got), secret) {
				t.Error("the secret shows")
			}
		})
	}
}

func TestMatchRefusesWhatIsNotJSON(t *testing.T) {
	compiled := compile(t, `{parameters: [{name: A}], virtualMachine: {metadata: {labels: {a: b}}, spec: {template: {spec: {networks: "${{A}}", tolerations: [{key: a}]}}}}}`)
	for name, vm := range map[string]map[string]any{
		"a Go integer":       {"metadata": map[string]any{"labels": map[string]any{"a": 1}}},
		"a map of strings":   {"metadata": map[string]any{"labels": map[string]string{"a": "b"}}},
		"below a parameter":  {"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"networks": []any{map[string]any{"a": float32(1)}}}}}},
		"an item of a list":  {"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"tolerations": []any{struct{}{}}}}}},
		"the spec as struct": {"spec": struct{}{}},
	} {
		t.Run(name, func(t *testing.T) {
			if found, err := compiled.Match(vm); err == nil {
				t.Errorf("got %v, want an error", found)
			}
		})
	}
	if found, err := compiled.Match(nil); err != nil || found.Matches() {
		t.Errorf("nothing at all: got %v, %v; want a difference", found, err)
	}
}

func TestMatchStopsAfterManyDifferences(t *testing.T) {
	labels := map[string]string{}
	for i := range 1000 {
		labels[fmt.Sprint("l", i)] = "x"
	}
	encoded, err := json.Marshal(labels)
	if err != nil {
		t.Fatal(err)
	}
	const want = 256
	if got := len(match(t, `{virtualMachine: {metadata: {labels: `+string(encoded)+`}}}`, `{}`).Differences()); got != want {
		t.Errorf("got %d differences, want %d", got, want)
	}
}

// TestMatchAStoredVirtualMachine compares what KubeVirt made of a rendered
// VirtualMachine with the template it came from.
func TestMatchAStoredVirtualMachine(t *testing.T) {
	compiled := compileFile(t, "fedora.yaml")
	want := map[string]string{
		"NAME": "web-1", "INSTANCETYPE": "u1.large", "DATA_SOURCE_NAME": "fedora", "DATA_SOURCE_NAMESPACE": "golden", "CLOUD_USER_PASSWORD": "k3f9-x0qa-77zt",
	}
	found, err := compiled.Match(readMachine(t, "fedora-stored.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string(nil), differences(found)); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, found.Values()); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}

	for name, tc := range map[string]struct {
		change func(spec map[string]any)
		want   []string
	}{
		"another image": {
			change: func(spec map[string]any) {
				volume := spec["dataVolumeTemplates"].([]any)[0].(map[string]any)["spec"].(map[string]any)
				volume["storage"].(map[string]any)["resources"].(map[string]any)["requests"].(map[string]any)["storage"] = "3000Gi"
			},
			want: []string{`spec.dataVolumeTemplates[0].spec.storage.resources.requests.storage: want "30Gi", got "3000Gi"`},
		},
		"one more volume": {
			change: func(spec map[string]any) {
				spec["dataVolumeTemplates"] = append(spec["dataVolumeTemplates"].([]any), map[string]any{"metadata": map[string]any{"name": "more"}})
			},
			want: []string{`spec.dataVolumeTemplates[1]: want nothing, got an object`},
		},
		"another disk of another machine": {
			change: func(spec map[string]any) {
				volumes := spec["template"].(map[string]any)["spec"].(map[string]any)["volumes"].([]any)
				volumes[0].(map[string]any)["dataVolume"].(map[string]any)["name"] = "web-2"
			},
			want: []string{`spec.template.spec.volumes[name=disk-1].dataVolume.name: want "web-1", got "web-2"`},
		},
		"another cloud-init": {
			change: func(spec map[string]any) {
				volumes := spec["template"].(map[string]any)["spec"].(map[string]any)["volumes"].([]any)
				volumes[1].(map[string]any)["cloudInitNoCloud"].(map[string]any)["userData"] = "#cloud-config\nuser: root"
			},
			want: []string{`spec.template.spec.volumes[name=cloudinitdisk].cloudInitNoCloud.userData: want (sensitive), got (sensitive)`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			vm := readMachine(t, "fedora-stored.json")
			tc.change(vm["spec"].(map[string]any))
			found, err := compiled.Match(vm)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, differences(found)); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMatchIsSafeForConcurrentUse(t *testing.T) {
	compiled, vm := compileFile(t, "fedora.yaml"), readMachine(t, "fedora-stored.json")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				found, err := compiled.Match(vm)
				if err != nil || !found.Matches() || found.Values()["NAME"] != "web-1" {
					t.Error(found, err)
				}
			}
		})
	}
	group.Wait()
}
