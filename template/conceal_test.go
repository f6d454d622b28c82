package template_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConceal(t *testing.T) {
	for name, tc := range map[string]struct{ spec, want string }{
		"texts with the parameter, at any depth": {
			"virtualMachine: {spec: {template: {spec: {hostname: 'x-${S}', subdomain: '${P}', volumes: [{name: a, cloudInitNoCloud: {userData: '${S|base64}', networkData: '${P}'}}]}}}}",
			`{"template":{"spec":{"hostname":"?","subdomain":"p","volumes":[{"name":"a","cloudInitNoCloud":{"userData":"?","networkData":"p"}}]}}}`,
		},
		"a whole value": {
			"virtualMachine: {spec: {template: {spec: {domain: {cpu: {cores: '${{NUM}}', sockets: '${{P2}}'}}}}}}",
			`{"template":{"spec":{"domain":{"cpu":{"cores":"?","sockets":2}}}}}`,
		},
		"an object with such a key": {
			"virtualMachine: {spec: {template: {spec: {nodeSelector: {'${S}': x}, hostname: h}}}}",
			`{"template":{"spec":{"nodeSelector":"?","hostname":"h"}}}`,
		},
		"an object with another key and such a value": {
			"virtualMachine: {spec: {template: {spec: {nodeSelector: {'${P}': '${S}'}, hostname: h}}}}",
			`{"template":{"spec":{"nodeSelector":"?","hostname":"h"}}}`,
		},
		"a list from which an item is missing": {
			"virtualMachine: {spec: {template: {spec: {tolerations: ['${{EMPTY}}', {key: '${S}'}], hostname: h}}}}",
			`{"template":{"spec":{"tolerations":"?","hostname":"h"}}}`,
		},
		"a list from which an item is missing that no such parameter determines": {
			"virtualMachine: {spec: {template: {spec: {tolerations: ['${{EMPTY}}', {key: k}], hostname: '${S}'}}}}",
			`{"template":{"spec":{"tolerations":[{"key":"k"}],"hostname":"?"}}}`,
		},
		"nothing": {
			"virtualMachine: {spec: {template: {spec: {hostname: '${P}'}}}}",
			`{"template":{"spec":{"hostname":"p"}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			compiled := compile(t, "parameters: [{name: S, value: secret}, {name: NUM, type: int, value: '4'}, {name: P, value: p}, {name: P2, type: int, value: '2'}, {name: EMPTY}]\n"+tc.spec)
			bound, err := compiled.Bind(nil)
			if err != nil {
				t.Fatal(err)
			}
			rendered, err := compiled.Render(bound)
			if err != nil {
				t.Fatal(err)
			}
			vm, before := rendered.Object(), rendered.Object()
			concealed := compiled.Conceal(vm, func(name string) bool { return name == "S" || name == "NUM" }, "?")
			raw, err := json.Marshal(concealed["spec"])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(vmOf(t, tc.want), vmOf(t, string(raw))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, vm); diff != "" {
				t.Errorf("the VirtualMachine was modified:\n%s", diff)
			}
		})
	}
}
