package template_test

import (
	"fmt"
	"testing"
)

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
		"quantities of one value in two units":                          guest("1024Mi", "1Gi"),
		"quantities as a number and as text":                            guest("1073741824", "1Gi"),
		"quantities with a fraction and an exponent":                    guest("1.5e3", "1500"),
		"quantities of two values":                                      other(guest("1024Mi", "1G"), `"1024Mi"`, `"1G"`),
		"something that is no quantity":                                 other(guest("1Gi", "much"), `"1Gi"`, `"much"`),
		"a quantity with an exponent that would take years":             other(guest("1Gi", `"1e-999999999"`), `"1Gi"`, `"1e-999999999"`),
		"a placeholder in a quantity":                                   bound(guest(`"${A}Gi"`, "4Gi"), map[string]string{"A": "4"}),
		"a placeholder in a quantity that is now spelt in another unit": bound(guest(`"${A}Mi"`, "2Gi"), map[string]string{"A": "2048"}),
		"a placeholder in a quantity with a fraction":                   bound(guest(`"${A}.5Gi"`, "1536Mi"), map[string]string{"A": "1"}),
		"a number in place of a unit":                                   bound(guest(`"${I}"`, "1Gi"), map[string]string{"I": "1073741824"}),
		"a whole quantity":                                              bound(guest(`"${{A}}"`, "1Gi"), map[string]string{"A": "1Gi"}),
		"a whole quantity that is a number":                             bound(guest(`"${{I}}"`, "1Gi"), map[string]string{"I": "1073741824"}),
		"a placeholder in a quantity that never becomes this one":       other(guest(`"${A}Zi"`, "1Gi"), `"${A}Zi"`, `"1Gi"`),
		"a unit is not looked at where the field is no quantity": {
			spec: `{virtualMachine: {spec: {template: {spec: {hostname: 1024Mi}}}}}`,
			vm:   `{spec: {template: {spec: {hostname: 1Gi}}}}`,
			wantDifferences: []string{
				`spec.template.spec.hostname: want "1024Mi", got "1Gi"`,
			},
		},
		"one quantity in two spellings of one parameter": {
			spec:       `{parameters: [{name: A}], virtualMachine: {metadata: {labels: {m: "${A}"}}, spec: {template: {spec: {domain: {memory: {guest: "${A}Mi"}}}}}}}`,
			vm:         `{metadata: {labels: {m: "2048"}}, spec: {template: {spec: {domain: {memory: {guest: 2Gi}}}}}}`,
			wantValues: map[string]string{"A": "2048"},
		},
		"an enum whose values are spelt in another way": {
			spec:       `{parameters: [{name: A, enum: [1024Mi, 2048Mi]}], virtualMachine: {spec: {template: {spec: {domain: {memory: {guest: "${A}"}}}}}}}`,
			vm:         `{spec: {template: {spec: {domain: {memory: {guest: 2Gi}}}}}}`,
			wantValues: map[string]string{"A": "2048Mi"},
		},
		"an integer that may be text": {
			spec: `{virtualMachine: {spec: {template: {spec: {readinessProbe: {httpGet: {port: 80}}, livenessProbe: {httpGet: {port: "http"}}}}}}}`,
			vm:   `{spec: {template: {spec: {readinessProbe: {httpGet: {port: "80"}}, livenessProbe: {httpGet: {port: http}}}}}}`,
		},
		"a placeholder for an integer that may be text": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {readinessProbe: {httpGet: {port: "${A}"}}, livenessProbe: {httpGet: {port: "${{A}}"}}}}}}}`,
			vm:         `{spec: {template: {spec: {readinessProbe: {httpGet: {port: 80}}, livenessProbe: {httpGet: {port: 80}}}}}}`,
			wantValues: map[string]string{"A": "80"},
		},
		"a time in another zone": {
			spec: `{virtualMachine: {spec: {dataVolumeTemplates: [{metadata: {creationTimestamp: "2026-05-04T10:00:00+02:00", name: x}}]}}}`,
			vm:   `{spec: {dataVolumeTemplates: [{metadata: {creationTimestamp: "2026-05-04T08:00:00Z", name: x}}]}}`,
		},
		"numbers are compared by value": {
			spec: `{virtualMachine: {spec: {dataVolumeTemplates: [{metadata: {managedFields: [{fieldsV1: {a: 1.10, b: 1e2, c: 18446744073709551616, d: 9007199254740993}}]}}]}}}`,
			vm:   `{spec: {dataVolumeTemplates: [{metadata: {managedFields: [{fieldsV1: {a: 1.1, b: 100, c: 18446744073709552000, d: 9007199254740993}}]}}]}}`,
		},
		"integers that a float would not tell apart": {
			spec: `{virtualMachine: {spec: {template: {spec: {terminationGracePeriodSeconds: 9007199254740993}}}}}`,
			vm:   `{spec: {template: {spec: {terminationGracePeriodSeconds: 9007199254740992}}}}`,
			wantDifferences: []string{
				`spec.template.spec.terminationGracePeriodSeconds: want 9007199254740993, got 9007199254740992`,
			},
		},
		"null, nothing and what is empty are the same": {
			spec: `{virtualMachine: {metadata: {labels: {}}, spec: {template: {spec: {nodeSelector: {}, networks: [], tolerations: [], domain: {resources: {}, devices: {}}}}}}}`,
			vm:   `{metadata: {labels: null}, spec: {template: {spec: {tolerations: null, domain: {devices: {disks: null}}}}}}`,
		},
		"a value that the types of KubeVirt drop is the same as none": {
			spec: `{virtualMachine: {spec: {template: {spec: {hostname: "", domain: {cpu: {cores: 0, model: x, isolateEmulatorThread: false}}}}}}}`,
			vm:   `{spec: {template: {spec: {domain: {cpu: {model: x}}}}}}`,
		},
		"a value that the types of KubeVirt keep is not the same as none": {
			spec: `{virtualMachine: {metadata: {labels: {a: ""}}, spec: {running: false, template: {spec: {terminationGracePeriodSeconds: 0}}}}}`,
			vm:   `{}`,
			wantDifferences: []string{
				`metadata.labels.a: want "", got nothing`,
				`spec.running: want false, got nothing`,
				`spec.template: want an object, got nothing`,
			},
		},
		"an object whose presence says something is not the same as none": {
			spec: `{virtualMachine: {spec: {template: {spec: {networks: [{name: a, pod: {}}], domain: {devices: {interfaces: [{name: a, masquerade: {}}], rng: {}}}}}}}}`,
			vm:   `{spec: {template: {spec: {networks: [{name: a, multus: {networkName: x}}], domain: {devices: {interfaces: [{name: a, bridge: {}}], rng: null}}}}}}`,
			wantDifferences: []string{
				`spec.template.spec.domain.devices.interfaces[name=a].masquerade: want an object, got nothing`,
				`spec.template.spec.domain.devices.rng: want an object, got nothing`,
				`spec.template.spec.networks[name=a].pod: want an object, got nothing`,
			},
		},
		"every place that differs is reported": {
			spec: `{virtualMachine: {metadata: {labels: {"a.b/c": x}}, spec: {runStrategy: Halted, template: {spec: {domain: {cpu: {cores: 1}}}}}}}`,
			vm:   `{metadata: {labels: [x]}, spec: {runStrategy: Always, template: {spec: {domain: {cpu: {cores: 2}}}}}}`,
			wantDifferences: []string{
				`metadata.labels: want an object, got a list`,
				`spec.runStrategy: want "Halted", got "Always"`,
				`spec.template.spec.domain.cpu.cores: want 1, got 2`,
			},
		},
		"a key that is no word is in quotes": {
			spec: `{virtualMachine: {metadata: {labels: {"a.b/c": x}}}}`,
			vm:   `{metadata: {labels: {"a.b/c": z}}}`,
			wantDifferences: []string{
				`metadata.labels["a.b/c"]: want "x", got "z"`,
			},
		},
		"what the virtual machine has beyond the template is no difference": {
			spec: `{virtualMachine: {metadata: {labels: {a: b}}, spec: {runStrategy: Halted}}}`,
			vm:   `{metadata: {uid: x, labels: {a: b, c: d}, finalizers: [x]}, spec: {runStrategy: Halted, template: {spec: {domain: {}}}}, status: {ready: true}}`,
		},
		"what the template has at another version of the API is the same": {
			spec: `{virtualMachine: {}}`,
			vm:   `{apiVersion: kubevirt.io/v1alpha3, kind: VirtualMachine}`,
		},
		"another kind is a difference": {
			spec: `{virtualMachine: {}}`,
			vm:   `{apiVersion: v1, kind: Pod}`,
			wantDifferences: []string{
				`apiVersion: want "kubevirt.io/v1", got "v1"`,
				`kind: want "VirtualMachine", got "Pod"`,
			},
		},
		"labels of the template are on the machine and on what it starts": {
			spec: `{objectLabels: {a: b, "${A}": c}, parameters: [{name: A}], virtualMachine: {}}`,
			vm:   `{metadata: {labels: {a: b, x: c}}, spec: {template: {metadata: {labels: {x: c}}}}}`,
			wantDifferences: []string{
				`spec.template.metadata.labels.a: want "b", got nothing`,
			},
		},
	})
}
