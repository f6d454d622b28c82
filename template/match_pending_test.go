package template_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/template"
)

// attended is a template with objects. PORT, TOKEN and KEY have no part in its VirtualMachine.
const attended = `{parameters: [{name: NAME, required: true}, {name: PORT, type: int, value: "80"}, {name: TOKEN, generate: expression, from: "[a-z]{8}", sensitive: true}, {name: KEY, required: true}],
	virtualMachine: {metadata: {name: "${NAME}"}, spec: {runStrategy: Halted, template: {METADATAspec: {hostname: "${NAME}", domain: {devices: {}}}}}},
	objects: [{apiVersion: v1, kind: Secret, metadata: {name: "${NAME}-${KEY}"}, stringData: {token: "${TOKEN}"}}, {apiVersion: v1, kind: Service, metadata: {name: "${NAME}"}, spec: {ports: [{port: "${{PORT}}"}]}}]}`

func TestMatchOfAVirtualMachineWithObjects(t *testing.T) {
	const (
		hold    = `objects.template.kubevirt.io/hold: objects`
		pending = `objects.template.kubevirt.io/pending: "20260601t110000z-aa:AAAA"`
		given   = `parameter.template.kubevirt.io/PORT: "8080", parameter.template.kubevirt.io/KEY: k`
	)
	plain := strings.Replace(attended, "METADATA", "", 1)
	noted := strings.Replace(attended, "METADATA", "metadata: {annotations: {a: b}}, ", 1)
	whole := strings.Replace(strings.Replace(attended, "METADATA", `metadata: {annotations: "${{NOTES}}"}, `, 1), "parameters: [", `parameters: [{name: NOTES, value: '{"a": "b"}'}, `, 1)
	vm := func(annotations, inner string) string {
		return `{metadata: {name: web, annotations: {template.kubevirt.io/template-ref: golden/web` + annotations + `}}, spec: {runStrategy: Halted, template: {metadata: {annotations: {` + inner + `}}, spec: {hostname: web, domain: {devices: {}}}}}}`
	}
	web := map[string]string{"NAME": "web"}
	testMatch(t, map[string]matchCase{
		"while its objects are pending":                     {spec: plain, vm: vm(", "+pending+", "+given, hold), wantValues: web},
		"when its objects exist":                            {spec: plain, vm: vm(", "+given, ""), wantValues: web},
		"with annotations of the template, while pending":   {spec: noted, vm: vm(", "+pending+", "+given, "a: b, "+hold), wantValues: web},
		"with annotations of the template, when they exist": {spec: noted, vm: vm(", "+given, "a: b"), wantValues: web},
		"with annotations that are a parameter, while pending": {
			spec: whole, vm: vm(", "+pending+", "+given+`, parameter.template.kubevirt.io/NOTES: '{"a": "b"}'`, "a: b, "+hold), wantValues: map[string]string{"NAME": "web", "NOTES": `{"a": "b"}`},
		},
		"with annotations that are the default of a parameter, while pending": {
			spec: whole, vm: vm(", "+pending+", "+given, "a: b, "+hold), wantValues: map[string]string{"NAME": "web", "NOTES": `{"a":"b"}`},
		},
		"with annotations that are an empty parameter, while pending": {
			spec: strings.Replace(whole, `{"a": "b"}`, "", 1), vm: vm(", "+pending+", "+given, hold), wantValues: map[string]string{"NAME": "web", "NOTES": ""},
		},
		"with annotations that are the default of a parameter, when they exist": {
			spec: whole, vm: vm(", "+given, "a: b"), wantValues: map[string]string{"NAME": "web", "NOTES": `{"a":"b"}`},
		},
		"values of parameters that only objects have are not compared": {
			spec: plain, vm: vm(`, parameter.template.kubevirt.io/PORT: none, parameter.template.kubevirt.io/TOKEN: UPPER`, hold), wantValues: web,
		},
		"another difference": {
			spec: noted, vm: vm(", "+pending+", "+given, "a: c, "+hold), wantDifferences: []string{`spec.template.metadata.annotations.a: want "b", got "c"`},
		},
	})
}

func TestReconstructingAVirtualMachineWithObjects(t *testing.T) {
	compiled := compile(t, strings.Replace(attended, "METADATA", "", 1))
	binding := bound(t, compiled, map[string]string{"NAME": "web", "KEY": "k", "PORT": "8080"})
	rendered, err := compiled.Render(binding)
	if err != nil {
		t.Fatal(err)
	}
	vm := rendered.Object()
	vm["spec"].(map[string]any)["template"].(map[string]any)["metadata"] = map[string]any{"annotations": map[string]any{"objects.template.kubevirt.io/hold": "objects"}}
	found, err := compiled.Match(vm, template.Preferring(map[string]string{"PORT": "80"}))
	if err != nil || !found.Matches() {
		t.Fatalf("%v, differences %v", err, found.Differences())
	}
	again, err := compiled.Reconstruct(found)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(rendered.JSON()), string(again.JSON())); diff != "" || again.Objects() != nil {
		t.Errorf("objects %s; VirtualMachine (-rendered +reconstructed):\n%s", again.Objects(), diff)
	}
}
