package template_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
)

func TestCompileRefuses(t *testing.T) {
	// devices returns a template with content among the devices.
	devices := func(content string) string {
		return `virtualMachine: {spec: {template: {spec: {domain: {devices: {` + content + `}}}}}}`
	}
	const in = "spec.virtualMachine.spec.template.spec.domain."

	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"a template without a VirtualMachine": {
			spec: `message: hello`,
			want: []string{`spec.virtualMachine: Required value`},
		},
		"a VirtualMachine that is no object": {
			spec: `virtualMachine: [1]`,
			want: []string{`spec.virtualMachine: Invalid value: must be an object, not a list`},
		},
		"another kind": {
			spec: `virtualMachine: {apiVersion: kubevirt.io/v1alpha3, kind: VirtualMachineInstance}`,
			want: []string{
				`spec.virtualMachine.kind: Unsupported value: "VirtualMachineInstance": must be one of "VirtualMachine"`,
			},
		},
		"a field that does not exist": {
			spec: `virtualMachine: {specs: {}, spec: {template: {spec: {volumess: []}}}}`,
			want: []string{
				`spec.virtualMachine.spec.template.spec.volumess: Invalid value: there is no such field; did you mean volumes?`,
				`spec.virtualMachine.specs: Invalid value: there is no such field; did you mean spec?`,
			},
		},
		"a field in the wrong case": {
			spec: devices(`disks: [{Name: a, BOOTORDER: 1}]`),
			want: []string{
				in + `devices.disks[0].BOOTORDER: Invalid value: there is no such field; did you mean bootOrder?`,
				in + `devices.disks[0].Name: Invalid value: there is no such field; did you mean name?`,
			},
		},
		"a field that nothing resembles": {
			spec: devices(`floppyTower: 5`),
			want: []string{in + `devices.floppyTower: Invalid value: there is no such field`},
		},
		"values of the wrong type, all of them": {
			spec: devices(`disks: {}, interfaces: [5], autoattachPodInterface: "true", networkInterfaceMultiqueue: 1, useVirtioTransitional: [], watchdog: x, rng: [], gpus: [{name: {}}]`),
			want: []string{
				in + `devices.autoattachPodInterface: Invalid value: "true": must be true or false, not a string`,
				in + `devices.disks: Invalid value: must be a list, not an object`,
				in + `devices.gpus[0].name: Invalid value: must be a string, not an object`,
				in + `devices.interfaces[0]: Invalid value: 5: must be an object, not a number`,
				in + `devices.networkInterfaceMultiqueue: Invalid value: 1: must be true or false, not a number`,
				in + `devices.rng: Invalid value: must be an object, not a list`,
				in + `devices.useVirtioTransitional: Invalid value: must be true or false, not a list`,
				in + `devices.watchdog: Invalid value: "x": must be an object, not a string`,
			},
		},
		"numbers that are out of range or broken": {
			spec: `virtualMachine: {spec: {template: {spec: {terminationGracePeriodSeconds: 9223372036854775808, domain: {cpu: {cores: -1, sockets: 1.5, threads: 4294967296}}}}}}`,
			want: []string{
				in + `cpu.cores: Invalid value: -1: must be an integer from 0 to 4294967295, not this number`,
				in + `cpu.sockets: Invalid value: 1.5: must be an integer from 0 to 4294967295, not this number`,
				in + `cpu.threads: Invalid value: 4294967296: must be an integer from 0 to 4294967295, not this number`,
				`spec.virtualMachine.spec.template.spec.terminationGracePeriodSeconds: Invalid value: 9223372036854775808: must be an integer from -9223372036854775808 to 9223372036854775807, not this number`,
			},
		},
		"quantities, times and ports that are none": {
			spec: `
virtualMachine:
  spec:
    dataVolumeTemplates: [{metadata: {creationTimestamp: yesterday}}]
    template: {spec: {domain: {memory: {guest: 4 Gigs}, resources: {requests: {cpu: many}}}, livenessProbe: {httpGet: {port: 8080.5}}}}
`,
			want: []string{
				`spec.virtualMachine.spec.dataVolumeTemplates[0].metadata.creationTimestamp: Invalid value: "yesterday": must be a time such as 2006-01-02T15:04:05Z, not this text`,
				in + `memory.guest: Invalid value: "4 Gigs": must be a quantity such as 500m or 2Gi, not this text`,
				in + `resources.requests[cpu]: Invalid value: "many": must be a quantity such as 500m or 2Gi, not this text`,
				`spec.virtualMachine.spec.template.spec.livenessProbe.httpGet.port: Invalid value: 8080.5: must be an integer or a string, not a number`,
			},
		},
		"null in a list": {
			spec: devices(`disks: [null]`),
			want: []string{in + `devices.disks[0]: Invalid value: must be an object, not null`},
		},
		"text with a reference where no text can be": {
			spec: `{parameters: [{name: A}], virtualMachine: {spec: {running: "${A}", template: {spec: {domain: {cpu: {cores: "${A}"}}, volumes: "a${A}"}}}}}`,
			want: []string{
				`spec.virtualMachine.spec.running: Invalid value: "${A}": must be true or false, not a string: a parameter gives that only as the whole value, written ${{NAME}}`,
				in + `cpu.cores: Invalid value: "${A}": must be an integer from 0 to 4294967295, not a string: a parameter gives that only as the whole value, written ${{NAME}}`,
				`spec.virtualMachine.spec.template.spec.volumes: Invalid value: "a${A}": must be a list, not a string: a parameter gives that only as the whole value, written ${{NAME}}`,
			},
		},
		"typed parameters where they never fit": {
			spec: `
parameters: [{name: I, type: int}, {name: B, type: bool}, {name: X, type: base64}]
virtualMachine: {metadata: {name: "${{I}}"}, spec: {running: "${{I}}", template: {spec: {domain: {cpu: {cores: "${{B}}"}}, hostname: "${{X}}"}}}}
`,
			want: []string{
				`spec.virtualMachine.metadata.name: Invalid value: "${{I}}": must be a string, which I of type int never is: write ${I}`,
				`spec.virtualMachine.spec.running: Invalid value: "${{I}}": must be true or false, which I of type int never is`,
				in + `cpu.cores: Invalid value: "${{B}}": must be an integer from 0 to 4294967295, which B of type bool never is`,
				`spec.virtualMachine.spec.template.spec.hostname: Invalid value: "${{X}}": must be a string, which X of type base64 never is: write ${X}`,
			},
		},
		"undefined references, each with its place": {
			spec: `
message: ${E}
parameters: [{name: NAME}]
objectLabels: {"${F}": "${G}"}
virtualMachine: {metadata: {name: "${A}-${NMAE}-${A}", labels: {"${B}": "${{C}}"}}, spec: {running: "${{D}}"}}
`,
			want: []string{
				`spec.virtualMachine.metadata.labels[${B}]: Invalid value: "${B}": no parameter is called B; declare it, or write $${ for a literal ${`,
				`spec.virtualMachine.metadata.labels[${B}]: Invalid value: "${{C}}": no parameter is called C; declare it, or write $${ for a literal ${`,
				`spec.virtualMachine.metadata.name: Invalid value: "${A}": no parameter is called A; declare it, or write $${ for a literal ${`,
				`spec.virtualMachine.metadata.name: Invalid value: "${NMAE}": no parameter is called NMAE; did you mean NAME?`,
				`spec.virtualMachine.spec.running: Invalid value: "${{D}}": no parameter is called D; declare it, or write $${ for a literal ${`,
				`spec.objectLabels[${F}]: Invalid value: "${F}": no parameter is called F; declare it, or write $${ for a literal ${`,
				`spec.objectLabels[${F}]: Invalid value: "${G}": no parameter is called G; declare it, or write $${ for a literal ${`,
				`spec.message: Invalid value: "${E}": no parameter is called E; declare it, or write $${ for a literal ${`,
			},
		},
		"a misspelt reference, with what was meant": {
			spec: `{parameters: [{name: CLOUD_USER}], virtualMachine: {metadata: {name: "${CLOUD_USR}"}}}`,
			want: []string{`spec.virtualMachine.metadata.name: Invalid value: "${CLOUD_USR}": no parameter is called CLOUD_USR; did you mean CLOUD_USER?`},
		},
		"an unknown policy for undefined references": {
			spec: `{undefinedReferences: Ignore, virtualMachine: {}}`,
			want: []string{`spec.undefinedReferences: Unsupported value: "Ignore": must be one of "Reject", "Keep"`},
		},
		"what belongs to one object": {
			spec: `virtualMachine: {metadata: {uid: a, resourceVersion: "1", ownerReferences: [{}], finalizers: [x]}, status: {ready: true}}`,
			want: []string{
				`spec.virtualMachine.metadata.finalizers: Forbidden: a template must not hold what belongs to one object`,
				`spec.virtualMachine.metadata.ownerReferences: Forbidden: a template must not hold what belongs to one object`,
				`spec.virtualMachine.metadata.resourceVersion: Forbidden: a template must not hold what belongs to one object`,
				`spec.virtualMachine.metadata.uid: Forbidden: a template must not hold what belongs to one object`,
				`spec.virtualMachine.status: Forbidden: a template has no status`,
			},
		},
		"metadata that does not exist or is no object": {
			spec: `virtualMachine: {metadata: {nmae: a}}`,
			want: []string{`spec.virtualMachine.metadata.nmae: Invalid value: there is no such field; did you mean name?`},
		},
		"metadata from a parameter": {
			spec: `{parameters: [{name: M}], virtualMachine: {metadata: "${{M}}"}}`,
			want: []string{`spec.virtualMachine.metadata: Invalid value: "${{M}}": must be an object, not a string`},
		},
		"parameters as keys of the VirtualMachine itself and of its metadata": {
			spec: `{parameters: [{name: K}], virtualMachine: {"${K}": {}, metadata: {"x${K}": a}}}`,
			want: []string{
				`spec.virtualMachine[${K}]: Invalid value: "${K}": this key cannot be a parameter`,
				`spec.virtualMachine.metadata[x${K}]: Invalid value: "x${K}": this key cannot be a parameter`,
			},
		},
		"a key that asks for JSON": {
			spec: `{parameters: [{name: K}], virtualMachine: {metadata: {labels: {"${{K}}": a}}}}`,
			want: []string{`spec.virtualMachine.metadata.labels[${{K}}]: Invalid value: "${{K}}": a key is always text: write ${K}`},
		},
		"keys that are the same once escapes are undone": {
			spec: `{undefinedReferences: Keep, virtualMachine: {metadata: {labels: {"$${K}": a, "${K}": b}}}}`,
			want: []string{`spec.virtualMachine.metadata.labels[${K}]: Duplicate value: "${K}": two keys are the same once $${ is replaced`},
		},
		"object labels that differ from the labels of the VirtualMachine": {
			spec: `{objectLabels: {team: web}, virtualMachine: {metadata: {labels: {team: db}}, spec: {template: {metadata: {labels: {team: web}}}}}}`,
			want: []string{`spec.objectLabels[team]: Duplicate value: "team": has another value in spec.virtualMachine.metadata.labels`},
		},
		"object labels that have no place": {
			spec: `{parameters: [{name: T}], objectLabels: {team: web}, virtualMachine: {spec: {template: "${{T}}"}}}`,
			want: []string{`spec.objectLabels: Forbidden: cannot be added to spec.virtualMachine.spec.template, which a parameter gives as a whole`},
		},
		"parameters without a name, and with one that is taken": {
			spec: `{parameters: [{value: a}, {name: A-B}, {name: A}, {name: A}, {name: A-B}], virtualMachine: {}}`,
			want: []string{
				`spec.parameters[0].name: Required value`,
				`spec.parameters[3].name: Duplicate value: "A"`,
				`spec.parameters[4].name: Duplicate value: "A-B"`,
			},
		},
		"a generator that does not exist, or has nothing to work from": {
			spec: `{parameters: [{name: A, generate: uuid, from: "[a]{1}"}, {name: B, generate: expression}], virtualMachine: {}}`,
			want: []string{
				`spec.parameters[0].generate: Unsupported value: "uuid": must be one of "expression"`,
				`spec.parameters[1].from: Required value: generate needs it`,
			},
		},
		"expressions that are none": {
			spec: `
parameters:
- {name: A, generate: expression, from: "plain"}
- {name: B, generate: expression, from: "[a-z]{x}"}
- {name: C, generate: expression, from: "[a-z]{0}"}
- {name: D, generate: expression, from: "[a-z]{256}"}
- {name: E, generate: expression, from: "[z-a]{2}"}
- {name: F, generate: expression, from: "[-]{2}"}
- {name: G, generate: expression, from: "[a]{1}[9-a]{2}"}
virtualMachine: {}
`,
			want: []string{
				`spec.parameters[0].from: Invalid value: "plain": must hold an expression such as [a-z0-9]{8}`,
				`spec.parameters[1].from: Invalid value: "[a-z]{x}": the length {x} must be a number from 1 to 255`,
				`spec.parameters[2].from: Invalid value: "[a-z]{0}": the length {0} must be a number from 1 to 255`,
				`spec.parameters[3].from: Invalid value: "[a-z]{256}": the length {256} must be a number from 1 to 255`,
				`spec.parameters[4].from: Invalid value: "[z-a]{2}": z-a is not a range: ranges run from a letter or digit to a later one in the order a-z, A-Z, 0-9`,
				`spec.parameters[5].from: Invalid value: "[-]{2}": [-] stands for no character`,
				`spec.parameters[6].from: Invalid value: "[a]{1}[9-a]{2}": 9-a is not a range: ranges run from a letter or digit to a later one in the order a-z, A-Z, 0-9`,
			},
		},
		"generators that do not make integers for type int": {
			spec: `
parameters:
- {name: A, type: int, generate: expression, from: "[0-9]{4}"}
- {name: B, type: int, generate: expression, from: "[a-f]{4}"}
- {name: C, type: int, generate: expression, from: "0[1-9]{4}"}
- {name: D, type: int, generate: expression, from: "[1-9]{1}[0-9]{3}"}
- {name: E, type: int, generate: expression, from: "-[1-9]{1}"}
virtualMachine: {}
`,
			want: []string{
				`spec.parameters[0].from: Invalid value: "[0-9]{4}": type int needs a generator that never makes a leading 0: begin with [1-9]{1}`,
				`spec.parameters[1].from: Invalid value: "[a-f]{4}": type int needs a generator that makes nothing but digits`,
				`spec.parameters[2].from: Invalid value: "0[1-9]{4}": type int needs a generator that never makes a leading 0: begin with [1-9]{1}`,
			},
		},
		"declarations that contradict themselves": {
			spec: `
parameters:
- {name: A, type: float}
- {name: B, minimum: 1}
- {name: C, type: int, minimum: 5, maximum: 4}
- {name: D, type: bool, pattern: t.*}
- {name: E, pattern: "("}
- {name: F, enum: [a, "", a]}
- {name: G, type: int, maximum: 3, enum: ["1", "4", x]}
virtualMachine: {}
`,
			want: []string{
				`spec.parameters[0].type: Unsupported value: "float": must be one of "string", "int", "bool", "base64"`,
				`spec.parameters[1].type: Invalid value: "": minimum and maximum need type int`,
				`spec.parameters[2].minimum: Invalid value: 5: must not be above maximum, which is 4`,
				`spec.parameters[3].type: Invalid value: "bool": type bool takes no pattern, enum or generate`,
				"spec.parameters[4].pattern: Invalid value: \"(\": must be a regular expression in RE2 syntax: error parsing regexp: missing closing ): `(`",
				`spec.parameters[5].enum[1]: Required value`,
				`spec.parameters[5].enum[2]: Duplicate value: "a"`,
				`spec.parameters[6].enum[1]: Invalid value: "4": must be at most 3`,
				`spec.parameters[6].enum[2]: Invalid value: "x": must be an integer`,
			},
		},
		"defaults that break the rules of their parameter": {
			spec: `
parameters:
- {name: A, type: int, value: "1.0"}
- {name: B, type: int, minimum: 3, value: "2"}
- {name: C, type: bool, value: "yes"}
- {name: D, type: base64, value: "a"}
- {name: E, pattern: "a|b", value: "ab"}
- {name: F, enum: [a, b], value: "c"}
virtualMachine: {}
`,
			want: []string{
				`spec.parameters[0].value: Invalid value: "1.0": must be an integer`,
				`spec.parameters[1].value: Invalid value: "2": must be at least 3`,
				`spec.parameters[2].value: Invalid value: "yes": must be true or false`,
				`spec.parameters[3].value: Invalid value: "a": must be base64 in the standard encoding, with padding and in one line`,
				`spec.parameters[4].value: Invalid value: "ab": must match a|b as a whole`,
				`spec.parameters[5].value: Unsupported value: "c": must be one of "a", "b"`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := template.Compile(parse(t, tc.spec))
			if diff := cmp.Diff(tc.want, causes(t, err)); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompileRefusesWhatIsNotJSON(t *testing.T) {
	for name, tc := range map[string]struct {
		raw  string
		want string
	}{
		"text that breaks off": {
			raw:  `{"spec": {`,
			want: `spec.virtualMachine: Invalid value: not JSON: something is wrong at byte 10`,
		},
		"two values": {
			raw:  `{} {}`,
			want: `spec.virtualMachine: Invalid value: not JSON: the value ends before byte 4`,
		},
		"a key that occurs twice": {
			raw:  `{"spec": {"template": {"spec": {"domain": {}, "domain": {}}}}}`,
			want: `spec.virtualMachine.spec.template.spec.domain: Duplicate value: "domain"`,
		},
		"null": {
			raw:  `null`,
			want: `spec.virtualMachine: Invalid value: must be an object, not null`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := &v1beta1.VirtualMachineTemplate{}
			object.Spec.VirtualMachine = &runtime.RawExtension{Raw: []byte(tc.raw)}
			_, err := template.Compile(object)
			if diff := cmp.Diff([]string{tc.want}, causes(t, err)); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompileTakesAnObject(t *testing.T) {
	vm := &virtv1.VirtualMachine{}
	vm.Name = "${NAME}"
	object := &v1beta1.VirtualMachineTemplate{}
	object.Spec.VirtualMachine = &runtime.RawExtension{Object: vm}
	object.Spec.Parameters = []v1beta1.Parameter{{Name: "NAME", Value: "web"}}

	rendered, err := render(object, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"web"},"spec":{}}`
	if diff := cmp.Diff(want, string(rendered.JSON())); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}
