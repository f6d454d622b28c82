package sample

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/fixture"
)

func TestAssume(t *testing.T) {
	for _, tc := range []struct {
		name        string
		parameter   v1beta1.Parameter
		pattern     string
		want        string
		wantMissing bool
	}{
		{name: "one that is not required may be empty", parameter: v1beta1.Parameter{}},
		{name: "a default is there", parameter: v1beta1.Parameter{Required: true, Value: "x"}},
		{name: "a generator makes one", parameter: v1beta1.Parameter{Required: true, Generate: "expression"}},
		{name: "the first listed value", parameter: v1beta1.Parameter{Required: true, Enum: []string{"b", "a"}}, want: "b"},
		{name: "the minimum", parameter: v1beta1.Parameter{Required: true, Type: "int", Minimum: ptr.To[int64](2), Maximum: ptr.To[int64](8)}, want: "2"},
		{name: "or else the maximum", parameter: v1beta1.Parameter{Required: true, Type: "int", Maximum: ptr.To[int64](8)}, want: "8"},
		{name: "false", parameter: v1beta1.Parameter{Required: true, Type: "bool"}, want: "false"},
		{name: "the name of the machine", parameter: v1beta1.Parameter{Required: true}, pattern: "web-${P}", want: "policy-check"},
		{name: "unless it has to look otherwise", parameter: v1beta1.Parameter{Required: true, Pattern: "[0-9]+"}, pattern: "web-${P}", wantMissing: true},
		{name: "a number without bounds", parameter: v1beta1.Parameter{Required: true, Type: "int"}, wantMissing: true},
		{name: "any text", parameter: v1beta1.Parameter{Required: true}, pattern: "web-${OTHER}", wantMissing: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.parameter.Name = "P"
			values, missing := assume([]v1beta1.Parameter{tc.parameter}, tc.pattern)
			if values["P"] != tc.want || (len(missing) > 0) != tc.wantMissing {
				t.Errorf("got %v, %v", values, missing)
			}
		})
	}
}

func TestASampleLooksLikeARenderedMachine(t *testing.T) {
	found := vmt(t, "box", `
spec:
  parameters: [{name: PIN, required: true, sensitive: true, enum: ["4711"]}, {name: SIZE, required: true, enum: [small]}]
  virtualMachine:
    metadata: {generateName: box-, annotations: {pin: "${PIN}"}}
    spec: {runStrategy: Halted, instancetype: {name: "${SIZE}"}, template: {spec: {domain: {devices: {}}}}}
  objects: [{apiVersion: v1, kind: Secret, metadata: {name: "${SIZE}"}}]
`)
	made, problem := Of(found)
	if problem != nil {
		t.Fatal(problem.Message)
	}
	if diff := cmp.Diff([]map[string]any{{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "small"}}}, made.Objects); diff != "" {
		t.Error(diff)
	}
	metadata := made.Object["metadata"].(map[string]any)
	annotations := metadata["annotations"].(map[string]any)
	record, _ := annotations["template.kubevirt.io/rendered"].(string)
	if !strings.Contains(record, `"sensitive":["PIN"]`) {
		t.Errorf("record %s", record)
	}
	delete(annotations, "template.kubevirt.io/rendered")
	want := map[string]any{
		"name": "box-policy-check", "generateName": "box-", "namespace": "golden",
		"annotations": map[string]any{"pin": "4711", "template.kubevirt.io/template-ref": "golden/box", "parameter.template.kubevirt.io/SIZE": "small"},
		"labels":      map[string]any{"vm.kubevirt.io/template": "box", "vm.kubevirt.io/template.namespace": "golden", "vm.kubevirt.io/template.revision": "3"},
	}
	if diff := cmp.Diff(want, metadata); diff != "" {
		t.Error(diff)
	}
}

// vmt is a template in namespace golden.
func vmt(t *testing.T, name, text string) *templatecache.Template {
	t.Helper()
	return templatecache.Compile(fixture.Template(t, name, text))
}

func TestAnOutlineIsTheSameEveryTime(t *testing.T) {
	found := vmt(t, "box", `
spec:
  parameters:
  - {name: NAME, required: true, generate: expression, from: "vm-[a-z0-9]{5}"}
  - {name: IMAGE, required: true}
  - {name: CLASS, value: fast}
  - {name: SIZE, required: true, enum: [small]}
  virtualMachine:
    metadata: {name: "${NAME}", annotations: {image: "from ${IMAGE}", class: "${CLASS}"}}
    spec: {runStrategy: Halted, instancetype: {name: "${SIZE}"}, template: {spec: {domain: {devices: {}}}}}
`)
	for range 2 {
		object, problem := Outline(found)
		if problem != nil {
			t.Fatal(problem.Message)
		}
		want := map[string]any{"name": "${NAME}", "annotations": map[string]any{"image": "from ${IMAGE}", "class": "fast"}}
		if diff := cmp.Diff(want, object["metadata"]); diff != "" {
			t.Error(diff)
		}
	}
}

func TestAnOutlineOfDefaultsThatMakeNoMachine(t *testing.T) {
	_, problem := Outline(vmt(t, "box", `
spec:
  parameters: [{name: CORES, value: two}]
  virtualMachine: {spec: {runStrategy: Halted, template: {spec: {domain: {cpu: {cores: "${{CORES}}"}, devices: {}}}}}}
`))
	if problem == nil || problem.Reason != v1beta1.ReasonNotRendered || !strings.Contains(problem.Message, `"two": value of CORES: must be an integer`) {
		t.Errorf("got %+v", problem)
	}
}

func TestAPlainMachineSaysNothingOfItsTemplateAndTellsItsSecrets(t *testing.T) {
	made, problem := Plain(vmt(t, "box", `
spec:
  parameters: [{name: PASSWORD, sensitive: true, value: hunter22}]
  virtualMachine:
    metadata: {annotations: {pin: "${PASSWORD}"}}
    spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}}}}}
`))
	if problem != nil {
		t.Fatal(problem.Message)
	}
	want := map[string]any{"name": "policy-check", "namespace": "golden", "annotations": map[string]any{"pin": "hunter22"}}
	if diff := cmp.Diff(want, made.Object["metadata"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"aHVudGVyMjI=", `"hunter22"`, "'hunter22'", "hunter22"}, made.Secrets); diff != "" {
		t.Error(diff)
	}
}
