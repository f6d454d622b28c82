package template_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/template"
)

func TestRender(t *testing.T) {
	const (
		head = `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine",`
		bare = head + `"metadata":{},"spec":{`
	)
	// cores is a template with one slot for an integer.
	const cores = `
virtualMachine: {spec: {template: {spec: {domain: {cpu: {cores: "${{CORES}}"}}}}}}
`
	renderedCores := func(value string) string {
		return bare + `"template":{"spec":{"domain":{"cpu":{` + value + `}}}}}}`
	}
	userData := func(text string) string {
		return `
virtualMachine:
  spec:
    template:
      spec:
        volumes:
        - name: cloudinit
          cloudInitNoCloud:
            userData: '` + text + `'
`
	}
	renderedUserData := func(text string) string {
		return bare + `"template":{"spec":{"volumes":[{"cloudInitNoCloud":{"userData":"` + text + `"},"name":"cloudinit"}]}}}}`
	}

	for name, tc := range map[string]struct {
		spec        string
		values      map[string]string
		want        string
		wantMessage string
		wantCauses  []string
	}{
		"a template without parameters gets apiVersion, kind, metadata and spec": {
			spec: `virtualMachine: {}`,
			want: bare + `}}`,
		},
		"apiVersion and kind may be written out": {
			spec: `virtualMachine: {kind: VirtualMachine, apiVersion: kubevirt.io/v1, spec: {running: true}}`,
			want: bare + `"running":true}}`,
		},
		"keys come out in byte order": {
			spec: `virtualMachine: {metadata: {labels: {b: "1", a: "2", B: "3", ä: "4"}}}`,
			want: head + `"metadata":{"labels":{"B":"3","a":"2","b":"1","ä":"4"}},"spec":{}}`,
		},
		"a reference is replaced any number of times and beside other text": {
			spec: `{parameters: [{name: A, value: x}, {name: B, value: "y"}], virtualMachine: {metadata: {name: "${A}-${B}${A}.z"}}}`,
			want: head + `"metadata":{"name":"x-yx.z"},"spec":{}}`,
		},
		"a reference in a map key is replaced": {
			spec: `{parameters: [{name: A, value: x}], virtualMachine: {metadata: {labels: {"z-${A}": "1", "y": "2"}, annotations: {"${A}": "${A}"}}}}`,
			want: head + `"metadata":{"annotations":{"x":"x"},"labels":{"y":"2","z-x":"1"}},"spec":{}}`,
		},
		"keys are sorted after their references are replaced": {
			spec:   `{parameters: [{name: A}], virtualMachine: {metadata: {labels: {"${A}": "1", m: "2", "b${A}": "3"}}}}`,
			values: map[string]string{"A": "z"},
			want:   head + `"metadata":{"labels":{"bz":"3","m":"2","z":"1"}},"spec":{}}`,
		},
		"what was inserted is never looked at again": {
			spec:   `{parameters: [{name: A}, {name: B, value: secret}], virtualMachine: {metadata: {name: "${A}${B}"}}}`,
			values: map[string]string{"A": "${B}$${B}${{B}}$"},
			want:   head + `"metadata":{"name":"${B}$${B}${{B}}$secret"},"spec":{}}`,
		},
		"two values never make a reference together": {
			spec:   `{parameters: [{name: A}, {name: B}], virtualMachine: {metadata: {name: "${A}${B}"}}}`,
			values: map[string]string{"A": "$", "B": "{A}"},
			want:   head + `"metadata":{"name":"${A}"},"spec":{}}`,
		},
		"inserted text is escaped as JSON": {
			spec:   `{parameters: [{name: A, multiline: true}], virtualMachine: {metadata: {name: "${A}\b\f\r\u2028"}}}`,
			values: map[string]string{"A": "\"\\/\n\té😀<&>"},
			want:   head + `"metadata":{"name":"\"\\/\n\té😀<&>\u0008\u000c\r` + "\u2028" + `"},"spec":{}}`,
		},
		"bytes that are no UTF-8 are refused, because two values could become one": {
			spec:       `{parameters: [{name: A}], virtualMachine: {metadata: {annotations: {a: "${A}"}}}}`,
			values:     map[string]string{"A": "a\xffb\xc3"},
			wantCauses: []string{`parameters[A]: Invalid value: "a\xffb\xc3": must be text in UTF-8`},
		},
		"$${ is a literal ${": {
			spec: userData("echo $${HOME} $$${HOME} $${{X}} $$HOME $${"),
			want: renderedUserData("echo ${HOME} $${HOME} ${{X}} $$HOME ${"),
		},
		"what only resembles a reference stays": {
			spec: userData("$ $$ ${} ${ ${A ${A-b} ${A:-b} ${-} $(A) {A} ${{}} ${{A}"),
			want: renderedUserData("$ $$ ${} ${ ${A ${A-b} ${A:-b} ${-} $(A) {A} ${{}} ${{A}"),
		},
		"undefined references stay with Keep": {
			spec: "undefinedReferences: Keep\nparameters: [{name: NAME, value: web}]" + userData("echo ${HOME} ${NAME} ${{OTHER}} ${{NAME}}"),
			want: renderedUserData("echo ${HOME} web ${{OTHER}} ${{NAME}}"),
		},
		"an undefined reference as the whole value stays with Keep": {
			spec: "undefinedReferences: Keep" + userData("${{OTHER}}"),
			want: renderedUserData("${{OTHER}}"),
		},
		"an integer is inserted without quotes": {
			spec:   `parameters: [{name: CORES}]` + cores,
			values: map[string]string{"CORES": "4"},
			want:   renderedCores(`"cores":4`),
		},
		"an integer may have white space around it, as JSON may": {
			spec:   `parameters: [{name: CORES}]` + cores,
			values: map[string]string{"CORES": " 4\t"},
			want:   renderedCores(`"cores":4`),
		},
		"an empty optional parameter removes its key": {
			spec: `parameters: [{name: CORES}]` + cores,
			want: renderedCores(``),
		},
		"an empty value replaces the default of an optional parameter": {
			spec:   `parameters: [{name: CORES, value: "2"}]` + cores,
			values: map[string]string{"CORES": ""},
			want:   renderedCores(``),
		},
		"an integer beyond the field's range is refused": {
			spec:       `parameters: [{name: CORES}]` + cores,
			values:     map[string]string{"CORES": "4294967296"},
			wantCauses: []string{`spec.virtualMachine.spec.template.spec.domain.cpu.cores: Invalid value: 4294967296: value of CORES: must be an integer from 0 to 4294967295, not this number`},
		},
		"a fraction in an integer field is refused": {
			spec:       `parameters: [{name: CORES}]` + cores,
			values:     map[string]string{"CORES": "1.5"},
			wantCauses: []string{`spec.virtualMachine.spec.template.spec.domain.cpu.cores: Invalid value: 1.5: value of CORES: must be an integer from 0 to 4294967295, not this number`},
		},
		"text in an integer field is refused": {
			spec:       `parameters: [{name: CORES}]` + cores,
			values:     map[string]string{"CORES": "four"},
			wantCauses: []string{`spec.virtualMachine.spec.template.spec.domain.cpu.cores: Invalid value: "four": value of CORES: must be an integer from 0 to 4294967295`},
		},
		"a JSON string in an integer field is refused": {
			spec:       `parameters: [{name: CORES}]` + cores,
			values:     map[string]string{"CORES": `"4"`},
			wantCauses: []string{`spec.virtualMachine.spec.template.spec.domain.cpu.cores: Invalid value: "4": value of CORES: must be an integer from 0 to 4294967295, not a string`},
		},
		"null fits no field": {
			spec:       `parameters: [{name: CORES}]` + cores,
			values:     map[string]string{"CORES": "null"},
			wantCauses: []string{`spec.virtualMachine.spec.template.spec.domain.cpu.cores: Invalid value: value of CORES: must be an integer from 0 to 4294967295, not null`},
		},
		"a boolean is inserted without quotes": {
			spec:   `{parameters: [{name: "ON", type: bool}], virtualMachine: {spec: {running: "${{ON}}"}}}`,
			values: map[string]string{"ON": "true"},
			want:   bare + `"running":true}}`,
		},
		"a number in a boolean field is refused": {
			spec:       `{parameters: [{name: "ON"}], virtualMachine: {spec: {running: "${{ON}}"}}}`,
			values:     map[string]string{"ON": "1"},
			wantCauses: []string{`spec.virtualMachine.spec.running: Invalid value: 1: value of ON: must be true or false, not a number`},
		},
		"a string as JSON is inserted with its quotes": {
			spec:   `{parameters: [{name: NAME}], virtualMachine: {metadata: {name: "${{NAME}}"}}}`,
			values: map[string]string{"NAME": `"web\u002d1"`},
			want:   head + `"metadata":{"name":"web-1"},"spec":{}}`,
		},
		"text that is no JSON is the string that it says": {
			spec:   `{parameters: [{name: NAME}, {name: NOTE}], virtualMachine: {metadata: {name: "${{NAME}}", annotations: {note: "${{NOTE}}"}}}}`,
			values: map[string]string{"NAME": "web-1", "NOTE": `{"a": 1} and more`},
			want:   head + `"metadata":{"annotations":{"note":"{\"a\": 1} and more"},"name":"web-1"},"spec":{}}`,
		},
		"text that is no JSON is refused where no string fits": {
			spec:       `{parameters: [{name: FLAG}], virtualMachine: {spec: {running: "${{FLAG}}"}}}`,
			values:     map[string]string{"FLAG": "maybe"},
			wantCauses: []string{`spec.virtualMachine.spec.running: Invalid value: "maybe": value of FLAG: must be true or false`},
		},
		"a number in a string field is refused": {
			spec:       `{parameters: [{name: NAME}], virtualMachine: {metadata: {name: "${{NAME}}"}}}`,
			values:     map[string]string{"NAME": "7"},
			wantCauses: []string{`spec.virtualMachine.metadata.name: Invalid value: 7: value of NAME: must be a string, not a number`},
		},
		"an object and a list are inserted compact and sorted, with fields that are null dropped": {
			spec:   `{parameters: [{name: NETS}], virtualMachine: {spec: {template: {spec: {networks: "${{NETS}}"}}}}}`,
			values: map[string]string{"NETS": ` [ {"pod": {}, "name": "a", "multus": null}, {"name":"b"} ] `},
			want:   bare + `"template":{"spec":{"networks":[{"name":"a","pod":{}},{"name":"b"}]}}}}`,
		},
		"every mistake inside an inserted value is named": {
			spec:   `{parameters: [{name: NETS}], virtualMachine: {spec: {template: {spec: {networks: "${{NETS}}"}}}}}`,
			values: map[string]string{"NETS": `[{"Name":"a"},{"name":1},null]`},
			wantCauses: []string{
				`spec.virtualMachine.spec.template.spec.networks[0].Name: Invalid value: value of NETS: there is no such field; did you mean name?`,
				`spec.virtualMachine.spec.template.spec.networks[1].name: Invalid value: 1: value of NETS: must be a string, not a number`,
				`spec.virtualMachine.spec.template.spec.networks[2]: Invalid value: value of NETS: must be an object, not null`,
			},
		},
		"a key that occurs twice inside an inserted value is refused": {
			spec:       `{parameters: [{name: NETS}], virtualMachine: {spec: {template: {spec: {networks: "${{NETS}}"}}}}}`,
			values:     map[string]string{"NETS": `[{"name":"a","name":"b"}]`},
			wantCauses: []string{`spec.virtualMachine.spec.template.spec.networks[0].name: Duplicate value: "name": value of NETS: this key occurs twice`},
		},
		"an empty optional parameter removes its list item, wherever it stands": {
			spec: `
parameters: [{name: A}, {name: B}, {name: C}]
virtualMachine: {spec: {template: {spec: {domain: {devices: {disks: ["${{A}}", {name: x}, "${{B}}"], interfaces: ["${{C}}"]}}}}}}
`,
			want: bare + `"template":{"spec":{"domain":{"devices":{"disks":[{"name":"x"}],"interfaces":[]}}}}}}`,
		},
		"list items that are there are separated from those that are": {
			spec: `
parameters: [{name: A}, {name: B}, {name: C}]
virtualMachine: {spec: {template: {spec: {domain: {devices: {disks: ["${{A}}", "${{B}}", "${{C}}"]}}}}}}
`,
			values: map[string]string{"B": `{"name":"b"}`, "C": `{"name":"c"}`},
			want:   bare + `"template":{"spec":{"domain":{"devices":{"disks":[{"name":"b"},{"name":"c"}]}}}}}}`,
		},
		"an empty optional parameter inside a text is the empty text": {
			spec: `{parameters: [{name: A}], virtualMachine: {metadata: {name: "x${A}y", labels: {a: "${A}"}}}}`,
			want: head + `"metadata":{"labels":{"a":""},"name":"xy"},"spec":{}}`,
		},
		"an empty optional parameter removes a key that is itself a parameter": {
			spec: `{parameters: [{name: K, value: k}, {name: V}], virtualMachine: {metadata: {labels: {"${K}": "${{V}}", a: "1"}}}}`,
			want: head + `"metadata":{"labels":{"a":"1"}},"spec":{}}`,
		},
		"keys that become the same are refused": {
			spec:       `{parameters: [{name: A}], virtualMachine: {metadata: {labels: {"${A}": "1", "x": "2"}}}}`,
			values:     map[string]string{"A": "x"},
			wantCauses: []string{`spec.virtualMachine.metadata.labels: Duplicate value: "x": the keys ${A} and x become the same`},
		},
		"a key that becomes empty is refused": {
			spec:       `{parameters: [{name: A}], virtualMachine: {metadata: {labels: {"${A}": "1"}}}}`,
			wantCauses: []string{`spec.virtualMachine.metadata.labels: Invalid value: the key ${A} is empty`},
		},
		"a field may be named by a parameter": {
			spec:   `{parameters: [{name: SOURCE}], virtualMachine: {spec: {template: {spec: {networks: [{name: a, "${SOURCE}": {}}]}}}}}`,
			values: map[string]string{"SOURCE": "pod"},
			want:   bare + `"template":{"spec":{"networks":[{"name":"a","pod":{}}]}}}}`,
		},
		"a field named by a parameter must exist": {
			spec:       `{parameters: [{name: SOURCE}], virtualMachine: {spec: {template: {spec: {networks: [{name: a, "${SOURCE}": {}}]}}}}}`,
			values:     map[string]string{"SOURCE": "Pod"},
			wantCauses: []string{`spec.virtualMachine.spec.template.spec.networks[0][${SOURCE}]: Invalid value: "Pod": there is no such field; did you mean pod?`},
		},
		"a field named by a parameter takes what it takes": {
			spec:       `{parameters: [{name: SOURCE}, {name: V, value: x}], virtualMachine: {spec: {template: {spec: {networks: [{name: a, "${SOURCE}": {networkName: "${V}"}}]}}}}}`,
			values:     map[string]string{"SOURCE": "pod"},
			wantCauses: []string{`spec.virtualMachine.spec.template.spec.networks[0][${SOURCE}].networkName: Invalid value: there is no such field`},
		},
		"a quantity may be put together": {
			spec:   `{parameters: [{name: GIB}], virtualMachine: {spec: {template: {spec: {domain: {memory: {guest: "${GIB}Gi"}}}}}}}`,
			values: map[string]string{"GIB": "4"},
			want:   bare + `"template":{"spec":{"domain":{"memory":{"guest":"4Gi"}}}}}}`,
		},
		"a quantity may be a number": {
			spec:   `{parameters: [{name: BYTES, type: int}], virtualMachine: {spec: {template: {spec: {domain: {memory: {guest: "${{BYTES}}"}}}}}}}`,
			values: map[string]string{"BYTES": "4294967296"},
			want:   bare + `"template":{"spec":{"domain":{"memory":{"guest":4294967296}}}}}}`,
		},
		"text that is no quantity is refused": {
			spec:       `{parameters: [{name: GIB}], virtualMachine: {spec: {template: {spec: {domain: {memory: {guest: "${GIB}Gi"}}}}}}}`,
			values:     map[string]string{"GIB": "four"},
			wantCauses: []string{`spec.virtualMachine.spec.template.spec.domain.memory.guest: Invalid value: "fourGi": must be a quantity such as 500m or 2Gi`},
		},
		"a port may be a name or a number": {
			spec: `
parameters: [{name: NAME, value: http}, {name: PORT, type: int, value: "80"}]
virtualMachine: {spec: {template: {spec: {readinessProbe: {httpGet: {port: "${NAME}"}}, livenessProbe: {httpGet: {port: "${{PORT}}"}}}}}}
`,
			want: bare + `"template":{"spec":{"livenessProbe":{"httpGet":{"port":80}},"readinessProbe":{"httpGet":{"port":"http"}}}}}}`,
		},
		"object labels go on the VirtualMachine and on its template": {
			spec: `
parameters: [{name: TEAM, value: web}, {name: KEY, value: tier}]
objectLabels: {team: "${TEAM}", "${KEY}": front}
virtualMachine: {metadata: {labels: {a: "1"}}, spec: {template: {metadata: {labels: {b: "2"}}}}}
`,
			want: head + `"metadata":{"labels":{"a":"1","team":"web","tier":"front"}},"spec":{"template":{"metadata":{"labels":{"b":"2","team":"web","tier":"front"}}}}}`,
		},
		"object labels make the metadata they need": {
			spec: `{objectLabels: {team: web}, virtualMachine: {}}`,
			want: head + `"metadata":{"labels":{"team":"web"}},"spec":{"template":{"metadata":{"labels":{"team":"web"}}}}}`,
		},
		"an object label that the VirtualMachine has with the same value is fine": {
			spec: `{parameters: [{name: T, value: web}], objectLabels: {team: "${T}", a: b}, virtualMachine: {metadata: {labels: {team: "${T}", a: b}}}}`,
			want: head + `"metadata":{"labels":{"a":"b","team":"web"}},"spec":{"template":{"metadata":{"labels":{"a":"b","team":"web"}}}}}`,
		},
		"an object label that becomes a label of the VirtualMachine is refused": {
			spec:       `{parameters: [{name: K, value: team}], objectLabels: {"${K}": x}, virtualMachine: {metadata: {labels: {team: "y"}}}}`,
			wantCauses: []string{`spec.virtualMachine.metadata.labels: Duplicate value: "team": the keys team and ${K} become the same`},
		},
		"a hardcoded namespace is dropped": {
			spec: `{virtualMachine: {metadata: {namespace: elsewhere, name: a}}}`,
			want: head + `"metadata":{"name":"a"},"spec":{}}`,
		},
		"a namespace with a reference is kept": {
			spec: `{parameters: [{name: NS, value: x}], virtualMachine: {metadata: {namespace: "team-${NS}"}}}`,
			want: head + `"metadata":{"namespace":"team-x"},"spec":{}}`,
		},
		"fields of metadata that are null or belong to a stored object are dropped": {
			spec: `{virtualMachine: {metadata: {creationTimestamp: null, generation: 3, uid: "", managedFields: [], ownerReferences: [], name: a, generateName: b}, status: {}}}`,
			want: head + `"metadata":{"generateName":"b","name":"a"},"spec":{}}`,
		},
		"fields that are null are dropped": {
			spec: `{virtualMachine: {spec: {running: null, template: {metadata: {creationTimestamp: null}}}}}`,
			want: bare + `"template":{"metadata":{}}}}`,
		},
		"numbers keep their digits": {
			spec: `{virtualMachine: {spec: {template: {spec: {terminationGracePeriodSeconds: 9223372036854775807, domain: {memory: {guest: 10737418240}}}}}}}`,
			want: bare + `"template":{"spec":{"domain":{"memory":{"guest":10737418240}},"terminationGracePeriodSeconds":9223372036854775807}}}}`,
		},
		"the message has its references replaced": {
			spec:        `{message: "Log in to ${A} with ${B}, $${C}", parameters: [{name: A, value: x}, {name: B, sensitive: true}], virtualMachine: {}}`,
			values:      map[string]string{"B": "${A}"},
			want:        bare + `}}`,
			wantMessage: "Log in to x with ${A}, ${C}",
		},
		"a message that is one whole reference is text": {
			spec:        `{message: "${{A}}", parameters: [{name: A, value: "not JSON"}], virtualMachine: {}}`,
			want:        bare + `}}`,
			wantMessage: "not JSON",
		},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(parse(t, tc.spec), tc.values)
			if diff := cmp.Diff(tc.wantCauses, causes(t, err)); diff != "" {
				t.Fatalf("causes (-want +got):\n%s", diff)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, string(rendered.JSON())); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantMessage, rendered.Message()); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRenderRefusesValuesOfAnotherTemplate(t *testing.T) {
	spec := `virtualMachine: {}`
	one, other := compile(t, spec), compile(t, spec)
	binding, err := one.Bind(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, binding := range []*template.Binding{binding, nil} {
		if _, err := other.Render(binding); err == nil || !strings.Contains(err.Error(), "bound for another") {
			t.Errorf("got error %v, want one that says the values were bound for another template", err)
		}
	}
}
