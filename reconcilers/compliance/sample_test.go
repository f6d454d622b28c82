package compliance

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/rego/policyset"
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
`)
	object, problem := sampleOf(found)
	if problem != nil {
		t.Fatal(problem.message)
	}
	metadata := object["metadata"].(map[string]any)
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

func TestMessagesAreBounded(t *testing.T) {
	var many []policyset.Violation
	for range 7 {
		v := policyset.Violation{Policy: "p", Rule: policyset.RuleDeny}
		v.Message = strings.Repeat("ä", 1000)
		many = append(many, v)
	}
	j := judgement{applying: []string{"p"}, decision: policyset.Decision{Denials: many}}
	if got := len(j.condition(1).Message); got > maximumMessage || got < maximumMessage-4 {
		t.Errorf("%d bytes", got)
	}
	if got := len(j.objections()["p"]); got > maximumCause || got < maximumCause-4 {
		t.Errorf("%d bytes", got)
	}
	j.decision.Denials = nil
	for range 7 {
		j.decision.Denials = append(j.decision.Denials, policyset.Violation{Policy: "p"})
	}
	if got := j.condition(1).Message; !strings.HasSuffix(got, "; and 2 more") {
		t.Errorf("got %s", got)
	}
}
