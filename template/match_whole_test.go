package template_test

import (
	"strings"
	"testing"
)

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
		"a text has quotes when a key has them": {
			spec:       `{parameters: [{name: A}], virtualMachine: {metadata: {labels: {"${A}": front}}, spec: {template: {spec: {hostname: "${{A}}"}}}}}`,
			vm:         `{metadata: {labels: {'"x"': front, x: back}}, spec: {template: {spec: {hostname: x}}}}`,
			wantValues: map[string]string{"A": `"x"`},
		},
		"an object of zero values was left out when another place lacks it": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {livenessProbe: {periodSeconds: "${{A}}"}, affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: "${{A}}"}]}}}}}}}`,
			vm:         `{spec: {template: {spec: {livenessProbe: {}, affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: ""}}]}}}}}}`,
			wantValues: map[string]string{"A": ""},
		},
		"no way to write a text fits two that differ": {
			spec:            `{parameters: [{name: A}], virtualMachine: {metadata: {labels: {"${A}": front}}, spec: {template: {spec: {hostname: "${{A}}"}}}}}`,
			vm:              `{metadata: {labels: {y: front}}, spec: {template: {spec: {hostname: x}}}}`,
			wantDifferences: []string{`metadata.labels.x: want "front", got nothing`},
		},
		"the values that an enum lists are tried as they are written": {
			spec:       `{parameters: [{name: A, enum: ['{"networkName": "a"}', '{"networkName":  "b"}']}], virtualMachine: {spec: {template: {spec: {networks: [{name: m, multus: "${{A}}"}]}}}}}`,
			vm:         `{spec: {template: {spec: {networks: [{name: m, multus: {networkName: b, default: true}}]}}}}`,
			wantValues: map[string]string{"A": `{"networkName":  "b"}`},
		},
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
