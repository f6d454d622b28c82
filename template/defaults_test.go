package template_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Parts of templates with one place for a parameter.
const (
	inCores  = `virtualMachine: {metadata: {name: vm}, spec: {template: {spec: {domain: {cpu: {cores: "${{P}}"}}}}}}`
	inMemory = `virtualMachine: {metadata: {name: vm}, spec: {template: {spec: {domain: {memory: {guest: "${P}"}}}}}}`
	inKey    = `virtualMachine: {metadata: {name: vm, labels: {"${P}": x}}}`
	inBool   = `virtualMachine: {metadata: {name: vm}, spec: {template: {spec: {domain: {devices: {rng: {}, disableHotplug: "${{P}}"}}}}}}`
)

func TestCheckDefaults(t *testing.T) {
	const cpu, memory = "spec.virtualMachine.spec.template.spec.domain.cpu.cores: ", "spec.virtualMachine.spec.template.spec.domain.memory.guest: "
	const advice = "; these are the template's own values: correct them, or require a value of the user"
	for name, tc := range map[string]struct {
		parameters string
		vm         string
		invalid    []string
		doubtful   []string
	}{
		"defaults that fit": {parameters: `{name: P, value: "2"}`, vm: inCores},
		"a text that is no quantity": {
			parameters: `{name: P, value: lots}`, vm: inMemory,
			invalid: []string{memory + `Invalid value: "lots": must be a quantity such as 500m or 2Gi` + advice},
		},
		"a text where a number belongs": {
			parameters: `{name: P, value: two}`, vm: inCores,
			invalid: []string{cpu + `Invalid value: "two": value of P: must be an integer from 0 to 4294967295` + advice},
		},
		"a text where a bool belongs": {
			parameters: `{name: P, value: maybe}`, vm: inBool,
			invalid: []string{`spec.virtualMachine.spec.template.spec.domain.devices.disableHotplug: Invalid value: "maybe": value of P: must be true or false` + advice},
		},
		"a key that is empty": {
			parameters: `{name: P, value: tier}, {name: Q}`, vm: strings.Replace(inKey, "${P}", "${P}${Q}", 1),
		},
		"two keys that become the same": {
			parameters: `{name: P, value: a}`, vm: `virtualMachine: {metadata: {name: vm, labels: {"${P}": x, a: z}}}`,
			invalid: []string{`spec.virtualMachine.metadata.labels: Duplicate value: "a": the keys ${P} and a become the same` + advice},
		},
		"all mistakes at once": {
			parameters: `{name: P, value: two}`, vm: `virtualMachine: {metadata: {name: vm}, spec: {template: {spec: {domain: {cpu: {cores: "${{P}}", sockets: "${{P}}"}}}}}}`,
			invalid: []string{
				cpu + `Invalid value: "two": value of P: must be an integer from 0 to 4294967295` + advice,
				strings.Replace(cpu, "cores", "sockets", 1) + `Invalid value: "two": value of P: must be an integer from 0 to 4294967295` + advice,
			},
		},
		"a generator whose values never fit": {
			parameters: `{name: P, generate: expression, from: "mem-[x]{2}", required: true}`, vm: inMemory,
			invalid: []string{memory + `Invalid value: "mem-xx": must be a quantity such as 500m or 2Gi` + advice},
		},
		"a generator some of whose values fit": {parameters: `{name: P, generate: expression, from: "[0-9a]{1}", required: true}`, vm: inCores},
		"a sensitive default is not shown": {
			parameters: `{name: P, value: hunter22, sensitive: true}`, vm: inMemory,
			invalid: []string{memory + `Invalid value: must be a quantity such as 500m or 2Gi` + advice},
		},
		"a required parameter without a value": {parameters: `{name: P, required: true}`, vm: inMemory},
		"a required parameter without a value, in a key": {
			parameters: `{name: P, required: true}`, vm: `virtualMachine: {metadata: {name: vm, labels: {"${P}": x, a: z}}}`,
		},
		"a required parameter beside a default that does not fit": {
			parameters: `{name: NAME, required: true}, {name: P, value: two}`, vm: strings.Replace(inCores, "name: vm", `name: "${NAME}"`, 1),
			doubtful: []string{cpu + `Invalid value: "two": value of P: must be an integer from 0 to 4294967295`},
		},
		"a required number": {parameters: `{name: P, required: true, type: int, minimum: 2}`, vm: inCores},
		"a required number in a place for less": {
			parameters: `{name: P, required: true, type: int, minimum: 5000000000}`, vm: inCores,
			doubtful: []string{cpu + `Invalid value: 5000000000: value of P: must be an integer from 0 to 4294967295, not this number`},
		},
		"a list of values, the first of which does not fit": {
			parameters: `{name: P, required: true, enum: [two, "2"]}`, vm: inCores,
			doubtful: []string{cpu + `Invalid value: "two": value of P: must be an integer from 0 to 4294967295`},
		},
		"a pattern that permits no number": {
			parameters: `{name: P, required: true, pattern: "(cores-)[2-9]+x?"}`, vm: inCores,
			doubtful: []string{cpu + `Invalid value: "cores-2": value of P: must be an integer from 0 to 4294967295`},
		},
		"a pattern that permits numbers":         {parameters: `{name: P, required: true, pattern: "[1-9][0-9]{0,2}"}`, vm: inCores},
		"a pattern of which no example is found": {parameters: `{name: P, required: true, pattern: ".\\b."}`, vm: inCores},
		"an optional parameter without a value, where something must be": {
			parameters: `{name: P}`, vm: inMemory,
			doubtful: []string{memory + `Invalid value: "": must be a quantity such as 500m or 2Gi`},
		},
		"an optional parameter without a value beside a mistake": {
			parameters: `{name: P}, {name: Q, value: two}`, vm: `virtualMachine: {metadata: {name: vm}, spec: {template: {spec: {domain: {cpu: {cores: "${{Q}}"}, memory: {guest: "${P}"}}}}}}`,
			invalid: []string{cpu + `Invalid value: "two": value of Q: must be an integer from 0 to 4294967295` + advice},
		},
		"an optional parameter that removes its field": {parameters: `{name: P}`, vm: inCores},
		"two generated names of objects": {
			parameters: `{name: P, generate: expression, from: "[a-z]{5}"}, {name: Q, generate: expression, from: "[a-z]{5}"}`,
			vm:         `{virtualMachine: {metadata: {name: vm}}, objects: [{apiVersion: v1, kind: Secret, metadata: {name: "${P}"}}, {apiVersion: v1, kind: Secret, metadata: {name: "${Q}"}}]}`,
		},
		"names of objects that only a user gives": {
			parameters: `{name: P, required: true}`,
			vm:         `{virtualMachine: {metadata: {name: vm}}, objects: [{apiVersion: v1, kind: Secret, metadata: {name: "${P}"}}, {apiVersion: v1, kind: Secret, metadata: {name: "x${P}"}}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := strings.TrimSuffix(strings.TrimPrefix(tc.vm, "{"), "}")
			if !strings.HasPrefix(tc.vm, "{") {
				spec = tc.vm
			}
			compiled := compile(t, "{parameters: ["+tc.parameters+"], "+spec+"}")
			for range 2 {
				invalid, doubtful := compiled.CheckDefaults()
				if diff := cmp.Diff(tc.invalid, texts(invalid)); diff != "" {
					t.Errorf("invalid (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.doubtful, texts(doubtful)); diff != "" {
					t.Errorf("doubtful (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func texts(causes field.ErrorList) []string {
	var all []string
	for _, cause := range causes {
		all = append(all, cause.Error())
	}
	return all
}

// TestTheCostOfDefaultsIsLimited checks a template that inserts a long default in many places.
func TestTheCostOfDefaultsIsLimited(t *testing.T) {
	var labels strings.Builder
	for i := range 200 {
		fmt.Fprintf(&labels, `l%d: "${P}", `, i)
	}
	compiled := compile(t, `{parameters: [{name: P, value: "`+strings.Repeat("x", 100<<10)+`"}], virtualMachine: {metadata: {name: vm, labels: {`+labels.String()+`}}}}`)
	invalid, _ := compiled.CheckDefaults()
	if len(invalid) != 1 || !strings.Contains(invalid[0].Error(), "the rendered VirtualMachine must be at most") {
		t.Errorf("got %v", texts(invalid))
	}
}

func TestAnOutlineHasPlaceholdersForWhatIsNotKnown(t *testing.T) {
	compiled := compile(t, `
parameters:
- {name: NAME, required: true, generate: expression, from: "vm-[a-z0-9]{5}"}
- {name: CORES, required: true, type: int}
- {name: MEMORY, required: true, pattern: "[0-9]+Gi"}
- {name: KEY, required: true}
- {name: CLASS, value: fast}
- {name: SIZE, required: true, enum: [small]}
- {name: NOTE}
virtualMachine:
  metadata: {name: "${NAME}", labels: {"${KEY}": "1", class: "${CLASS}"}, annotations: {note: "${NOTE}"}}
  spec:
    instancetype: {name: "${SIZE}"}
    template: {spec: {domain: {cpu: {cores: "${{CORES}}"}, memory: {guest: "${MEMORY}"}}}}
objects: [{apiVersion: v1, kind: Secret, metadata: {name: "${KEY}"}}]
`)
	const want = `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"annotations":{"note":""},"labels":{"${KEY}":"1","class":"fast"},"name":"${NAME}"},` +
		`"spec":{"instancetype":{"name":"small"},"template":{"spec":{"domain":{"cpu":{"cores":"${CORES}"},"memory":{"guest":"${MEMORY}"}}}}}}`
	for range 2 {
		rendered, err := compiled.Outline(map[string]string{"SIZE": "small"})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(rendered.JSON()); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestAnOutlineOfANumberThatIsJoined(t *testing.T) {
	compiled := compile(t, `{syntax: Parentheses, parameters: [{name: CORES, required: true}], virtualMachine: {spec: {template: {spec: {domain: {cpu: {cores: "1$((CORES))"}}}}}}}`)
	rendered, err := compiled.Outline(nil)
	if err != nil || !strings.Contains(string(rendered.JSON()), `"cores":"1${CORES}"`) {
		t.Errorf("got %v, %s", err, rendered.JSON())
	}
}
