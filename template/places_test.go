package template_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/template"
)

func TestPlaces(t *testing.T) {
	compiled := compile(t, `
secretize: true
parameters:
- {name: NAME, required: true}
- {name: CORES, type: int}
- {name: KEY, value: example.com/key}
- {name: IMAGE, value: fedora}
- {name: PORT, value: "80"}
- {name: DATA, value: a}
- {name: SPARE}
virtualMachine:
  metadata:
    name: "${NAME}"
    labels: {app: "${NAME}", "${KEY}": x}
    annotations: {port: "on ${PORT}"}
  spec:
    runStrategy: Halted
    template:
      spec:
        domain: {cpu: {cores: "${{CORES}}"}, devices: {}}
        volumes:
        - {name: root, containerDisk: {image: "registry/${IMAGE}"}}
        - {name: init, cloudInitNoCloud: {userData: "${DATA}"}}
objects:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: "${NAME}-ports"}, data: {port: "${PORT}"}}
`)
	volumes := []string{"spec", "template", "spec", "volumes"}
	for name, want := range map[string]template.Places{
		"NAME":  {VM: [][]string{{"metadata", "labels"}, {"metadata", "name"}, volumes}, Objects: true},
		"CORES": {VM: [][]string{{"spec", "template", "spec", "domain", "cpu", "cores"}}},
		"KEY":   {VM: [][]string{{"metadata", "labels"}}},
		"IMAGE": {VM: [][]string{volumes}},
		"PORT":  {VM: [][]string{{"metadata", "annotations", "port"}}, Objects: true},
		"DATA":  {Objects: true},
		"SPARE": {},
		"NONE":  {},
	} {
		if diff := cmp.Diff(want, compiled.Places(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
