package openshift_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/cmd/stencilctl/convert/openshift"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/template"
)

func parse(t *testing.T, manifest string) map[string]any {
	t.Helper()
	var read map[string]any
	if err := yaml.Unmarshal([]byte(manifest), &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// wrap returns a Template with the given fields of its VirtualMachine and of the Template.
func wrap(vm, beside string) string {
	return "apiVersion: template.openshift.io/v1\nkind: Template\nmetadata: {name: a}\nobjects:\n- {apiVersion: kubevirt.io/v1, kind: VirtualMachine, " + vm + "}\n" + beside
}

func TestConvert(t *testing.T) {
	for _, tc := range []struct {
		name      string
		template  string
		options   openshift.Options
		want      string // of metadata and spec; "" does not matter
		wantNotes []string
		wantLoss  []string
	}{
		{
			name:     "parameters and annotations are kept",
			template: "{apiVersion: template.openshift.io/v1, kind: Template, metadata: {name: rhel, namespace: openshift, uid: u, annotations: {openshift.io/display-name: RHEL, description: A server}, labels: {os: rhel}}, message: 'hello ${NAME}', objects: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: '${NAME}'}, spec: {running: false}}], parameters: [{name: NAME, displayName: Name, description: its name, generate: expression, from: 'rhel-[a-z0-9]{6}', required: true}, {name: CORES, value: 2}]}",
			want: `
metadata: {name: rhel, annotations: {openshift.io/display-name: RHEL, description: A server}, labels: {os: rhel}}
spec:
  message: hello ${NAME}
  parameters:
  - {name: NAME, displayName: Name, description: its name, generate: expression, from: 'rhel-[a-z0-9]{6}', required: true}
  - {name: CORES, value: "2"}
  virtualMachine: {apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: '${NAME}'}, spec: {runStrategy: Halted}}
`,
			wantNotes: []string{
				"objects[0].spec.running: false becomes runStrategy: Halted",
				"metadata.namespace: is left out: kubectl apply -n, or -n beside -f here, chooses one",
			},
		},
		{
			name:     "labels become objectLabels, and win over those of the VirtualMachine",
			template: wrap("metadata: {labels: {app: old, tier: a}}, spec: {template: {metadata: {labels: {app: web}}}}", "labels: {app: web, name: '${NAME}'}\nparameters: [{name: NAME}]"),
			want: `
metadata: {name: a}
spec:
  objectLabels: {app: web, name: '${NAME}'}
  parameters: [{name: NAME}]
  virtualMachine: {apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {labels: {tier: a}}, spec: {template: {metadata: {labels: {}}}}}
`,
			wantNotes: []string{
				`objects[0].metadata.labels[app]: "old" gives way to "web", the label of the Template`,
				"labels: become objectLabels, and are put on the VirtualMachineInstance as well",
			},
		},
		{
			name: "other objects are kept, with the labels of the Template",
			template: wrap("metadata: {name: '${NAME}'}, spec: {}",
				"- {apiVersion: v1, kind: Secret, metadata: {name: '${NAME}-keys', namespace: shop, uid: u, finalizers: [x], labels: {app: old}}, stringData: {a: '${NAME} ${HOME}'}, status: {}}\n- {apiVersion: v1, kind: Service, metadata: {name: '${NAME}'}}\nlabels: {app: web}\nparameters: [{name: NAME}]"),
			want: `
metadata: {name: a}
spec:
  objectLabels: {app: web}
  objects:
  - {apiVersion: v1, kind: Secret, metadata: {name: '${NAME}-keys', labels: {}}, stringData: {a: '${NAME} ${DOLLAR}{HOME}'}}
  - {apiVersion: v1, kind: Service, metadata: {name: '${NAME}'}}
  parameters: [{name: NAME}, {name: DOLLAR, value: "$", description: "A dollar sign: ${DOLLAR}{HOME} becomes the text ${HOME}"}]
  virtualMachine: {apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: '${NAME}'}, spec: {}}
`,
			wantNotes: []string{
				"objects: those besides the VirtualMachine become spec.objects, and are created with each VirtualMachine by the rights of its creator; kinds that the chart's value objects.resources does not list are denied",
				`objects[1].metadata.labels[app]: "old" gives way to "web", the label of the Template`,
				"labels: become objectLabels, and are put on the VirtualMachineInstance as well",
				"objects[1].stringData.a: ${HOME} stays as it is, because no parameter is called HOME",
			},
			wantLoss: []string{
				"objects[1].metadata.finalizers: is dropped: it belongs to one object",
				"objects[1].metadata.namespace: is dropped: the object is created in the namespace of the VirtualMachine",
			},
		},
		{
			name:     "what belongs to one object is dropped",
			template: wrap("metadata: {name: a, namespace: shop, finalizers: [x], creationTimestamp: null}, spec: {}, status: {ready: true}", ""),
			want:     "metadata: {name: a}\nspec: {virtualMachine: {apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: a}, spec: {}}}",
			wantLoss: []string{
				"objects[0].metadata.finalizers: is dropped: it belongs to one object",
				"objects[0].metadata.namespace: is dropped: a VirtualMachine is created in the namespace of the request",
			},
		},
		{
			name:      "running",
			template:  wrap("spec: {running: true}", ""),
			want:      "metadata: {name: a}\nspec: {virtualMachine: {apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: {runStrategy: Always}}}",
			wantNotes: []string{"objects[0].spec.running: true becomes runStrategy: Always"},
		},
		{
			name:     "running by a parameter, which stays",
			template: wrap("spec: {running: '${{RUNNING}}'}", "parameters: [{name: RUNNING, value: 'true'}]"),
			want:     "metadata: {name: a}\nspec: {parameters: [{name: RUNNING, value: 'true'}], virtualMachine: {apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: {running: '${{RUNNING}}'}}}",
		},
		{
			name:      "a value with line breaks",
			template:  wrap("metadata: {annotations: {a: '${KEYS}'}}, spec: {}", "parameters: [{name: KEYS, value: \"a\\nb\"}]"),
			want:      "metadata: {name: a}\nspec: {parameters: [{name: KEYS, value: \"a\\nb\", multiline: true}], virtualMachine: {apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {annotations: {a: '${KEYS}'}}, spec: {}}}",
			wantNotes: []string{"parameters[0]: gets multiline: true, because the value of KEYS has a line break"},
		},
		{
			name:     "a namespace that is a parameter stays",
			template: wrap("metadata: {namespace: '${NS}'}, spec: {}", "parameters: [{name: NS}]"),
			want:     "metadata: {name: a}\nspec: {parameters: [{name: NS}], virtualMachine: {apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {namespace: '${NS}'}, spec: {}}}",
		},
		{
			name:      "an old version of the API",
			template:  "{apiVersion: v1, kind: Template, objects: [{apiVersion: kubevirt.io/v1alpha3, kind: VirtualMachine, spec: {}}]}",
			want:      "metadata: {}\nspec: {virtualMachine: {apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: {}}}",
			wantNotes: []string{"objects[0].apiVersion: kubevirt.io/v1alpha3 becomes kubevirt.io/v1"},
		},
		{
			name:     "fields that there are not",
			template: wrap("spec: {}", "parameters: [{name: A, secret: true}]\nextra: 1"),
			wantLoss: []string{"extra: a VirtualMachineTemplate has nothing like it", "parameters[0].secret: a parameter has nothing like it"},
		},
		{
			name:      "a generator beside a value does nothing",
			template:  wrap("spec: {}", "parameters: [{name: A, value: x, generate: expression, from: '[a-z]{3}'}]"),
			want:      "metadata: {name: a}\nspec: {parameters: [{name: A, value: x}], virtualMachine: {apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: {}}}",
			wantNotes: []string{"parameters[0].generate: is left out: A has a value"},
		},
		{
			name: "what would be encoders",
			template: wrap(`metadata: {annotations: {a: "${A|yaml} $${A|yaml} ${A |x}", b: "${{A|yaml}}", c: "${B|yaml}"}}, spec: {}`,
				"parameters: [{name: A}]"),
			want: `
metadata: {name: a}
spec:
  parameters: [{name: A}, {name: DOLLAR, value: "$", description: "A dollar sign: ${DOLLAR}{HOME} becomes the text ${HOME}"}]
  virtualMachine: {apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: {},
    metadata: {annotations: {a: "${DOLLAR}{A|yaml} ${DOLLAR}${DOLLAR}{A|yaml} ${DOLLAR}{A |x}", b: "${DOLLAR}{{A|yaml}}", c: "${DOLLAR}{B|yaml}"}}}
`,
		},
		{
			name: "placeholders, declared and not",
			template: wrap(`metadata: {annotations: {a: "${A} ${HOME} $${HOME}", b: "$${A}", c: "${{A}}", d: "${{B}}", e: "x ${{A}}", f: "$${-x} ${", "${A}/k": "$HOME"}}, spec: {}`,
				"parameters: [{name: A}]"),
			want: `
metadata: {name: a}
spec:
  parameters: [{name: A}, {name: DOLLAR, value: "$", description: "A dollar sign: ${DOLLAR}{HOME} becomes the text ${HOME}"}]
  virtualMachine: {apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: {},
    metadata: {annotations: {a: "${A} ${DOLLAR}{HOME} ${DOLLAR}${DOLLAR}{HOME}", b: "${DOLLAR}${A}", c: "${{A}}", d: "${DOLLAR}{{B}}", e: "x ${{A}}", f: "${DOLLAR}${DOLLAR}{-x} ${", "${A}/k": "$HOME"}}}
`,
			wantNotes: []string{
				"objects[0].metadata.annotations.a: ${HOME} stays as it is, because no parameter is called HOME",
				"objects[0].metadata.annotations.d: ${{B}} stays as it is, because no parameter is called B",
			},
		},
		{
			name:     "placeholders in parentheses",
			options:  openshift.Options{Parentheses: true},
			template: wrap(`metadata: {annotations: {a: "$(A) $(hostname) ${A} $${A}", b: "$((A))", c: "x $((A))", d: "$((B))", e: "$$(A)"}}, spec: {}`, "message: $(A)\nparameters: [{name: A}]"),
			want: `
metadata: {name: a}
spec:
  message: ${A}
  parameters: [{name: A}, {name: DOLLAR, value: "$", description: "A dollar sign: ${DOLLAR}{HOME} becomes the text ${HOME}"}]
  virtualMachine: {apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: {},
    metadata: {annotations: {a: "${A} $(hostname) ${DOLLAR}{A} ${DOLLAR}${DOLLAR}{A}", b: "${{A}}", c: "x ${A}", d: "$((B))", e: "${DOLLAR}${A}"}}}
`,
			wantNotes: []string{
				"objects[0].metadata.annotations.a: $(hostname) stays as it is, because no parameter is called hostname",
				"objects[0].metadata.annotations.c: $((A)) is beside other text, so that the value stays text; a template with syntax Parentheses joins digits with it to a number",
				"objects[0].metadata.annotations.d: $((B)) stays as it is, because no parameter is called B",
			},
		},
		{
			name: "paths in annotations begin where the VirtualMachine is now",
			template: `
apiVersion: template.openshift.io/v1
kind: Template
metadata:
  name: a
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: "{}"
    template.kubevirt.io/editable: |
      /objects[0].spec.template.spec.domain.cpu.cores
      /objects[1].data
      .metadata.name
    validations: '[{"name": "a", "path": "jsonpath::.spec.domain.memory.guest", "rule": "integer", "min": 1073741824}, {"name": "b", "path": "jsonpath::$.objects[0].spec.template.spec.domain.cpu.cores", "max": 9007199254740993}, {"name": "c", "path": "jsonpath::.objects[0].metadata.name"}]'
objects: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: {}}]
`,
			want: `
metadata:
  name: a
  annotations:
    template.kubevirt.io/editable: |
      /spec.virtualMachine.spec.template.spec.domain.cpu.cores
      .metadata.name
    validations: |
      [
        {
          "name": "a",
          "path": "jsonpath::.spec.domain.memory.guest",
          "rule": "integer",
          "min": 1073741824
        },
        {
          "max": 9007199254740993,
          "name": "b",
          "path": "jsonpath::.spec.domain.cpu.cores"
        },
        {
          "name": "c",
          "path": "jsonpath::.objects[0].metadata.name"
        }
      ]
spec: {virtualMachine: {apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: {}}}
`,
			wantLoss: []string{
				"metadata.annotations[template.kubevirt.io/editable]: /objects[1].data is dropped: that is not the VirtualMachine",
				"metadata.annotations[validations][2].path: jsonpath::.objects[0].metadata.name finds nothing any more: rules look below spec.template of the VirtualMachine",
			},
		},
		{
			name:      "validations that are no JSON",
			template:  "{apiVersion: template.openshift.io/v1, kind: Template, metadata: {annotations: {validations: '[{'}}, objects: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: {}}]}",
			want:      "metadata: {annotations: {validations: '[{'}}\nspec: {virtualMachine: {apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: {}}}",
			wantNotes: []string{"metadata.annotations[validations]: is copied unchanged, but is not valid JSON: unexpected EOF"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := parse(t, tc.template)
			got, notes, err := openshift.Convert(in, tc.options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parse(t, tc.template), in); diff != "" {
				t.Errorf("the Template was changed:\n%s", diff)
			}
			var noted, lost []string
			for _, n := range notes {
				if n.Loss {
					lost = append(lost, n.String())
				} else {
					noted = append(noted, n.String())
				}
			}
			if diff := cmp.Diff(tc.wantNotes, noted); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantLoss, lost); diff != "" {
				t.Errorf("losses (-want +got):\n%s", diff)
			}
			if tc.want == "" {
				return
			}
			raw, err := yaml.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			want := parse(t, tc.want)
			want["apiVersion"], want["kind"] = "template.kubevirt.io/v1beta1", "VirtualMachineTemplate"
			found := parse(t, string(raw))
			normalize(want, found)
			if diff := cmp.Diff(want, found); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// normalize makes the JSON of validations comparable.
func normalize(objects ...map[string]any) {
	for _, object := range objects {
		metadata, _ := object["metadata"].(map[string]any)
		if metadata == nil {
			object["metadata"] = map[string]any{}
		}
		annotations, _ := metadata["annotations"].(map[string]any)
		text, _ := annotations["validations"].(string)
		var decoded any
		if text != "" && yaml.Unmarshal([]byte(text), &decoded) == nil {
			annotations["validations"] = decoded
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		name, template string
		want           []string
	}{
		{
			name:     "objects that are none",
			template: wrap("spec: {}", "- {apiVersion: v1, kind: Secret, metadata: {name: '${NAME}-keys'}}\n- text"),
			want:     []string{"objects[2]: must be an object"},
		},
		{
			name:     "several VirtualMachines",
			template: wrap("spec: {}", "- {apiVersion: kubevirt.io/v1, kind: VirtualMachine}"),
			want:     []string{"objects: there are 2 VirtualMachines among them, and a VirtualMachineTemplate holds one: make a Template of each"},
		},
		{
			name:     "no VirtualMachine",
			template: "{apiVersion: template.openshift.io/v1, kind: Template, objects: [{apiVersion: v1, kind: Service}]}",
			want:     []string{"objects: there is no VirtualMachine among them"},
		},
		{
			name:     "a parameter that is none",
			template: wrap("spec: {}", "parameters: [NAME]"),
			want:     []string{"parameters[0]: must be an object"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := openshift.Convert(parse(t, tc.template), openshift.Options{})
			var rejected *openshift.RejectedError
			if !errors.As(err, &rejected) {
				t.Fatalf("got %v, want a refusal", err)
			}
			var got []string
			for _, cause := range rejected.Causes {
				got = append(got, cause.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTextsMeanTheSame renders the result, and compares it with OpenShift's result for the same
// text, by its rule: ${NAME} of a parameter is replaced, anything else stays.
func TestTextsMeanTheSame(t *testing.T) {
	for text, want := range map[string]string{
		"${A}":            "value",
		"x${A}y${A}":      "xvaluey" + "value",
		"${B}":            "${B}",
		"$${B}":           "$${B}",
		"$${A} $$${A}":    "$value $$value",
		"$$${B}":          "$$${B}",
		"${{B}}":          "${{B}}",
		"$${-x}":          "$${-x}",
		"$$${ $":          "$$${ $",
		"${":              "${",
		"${A":             "${A",
		"$(A) $((A))":     "$(A) $((A))",
		"echo ${A}${B:-}": "echo value${B:-}",
		"a ${{B}}":        "a ${{B}}",
	} {
		in := parse(t, wrap("metadata: {name: web}, spec: {runStrategy: Halted}", "parameters: [{name: A, value: value}]"))
		vm := in["objects"].([]any)[0].(map[string]any)
		vm["metadata"].(map[string]any)["annotations"] = map[string]any{"text": text}
		out, _, err := openshift.Convert(in, openshift.Options{})
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := template.Compile(out)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		annotations := fixture.Render(t, compiled, nil).Object()["metadata"].(map[string]any)["annotations"].(map[string]any)
		if got := annotations["text"]; got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
