package readiness_test

import (
	"testing"

	"github.com/vmstencil/stencil/test/harness"
)

const milkDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: milks.example.org}
spec:
  group: example.org
  names: {kind: Milk, plural: milks}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func TestATemplateIsReadyWithTheObjectOfAVolumePopulator(t *testing.T) {
	s := full.on(t)
	own := s.namespace(t)
	poured := func(kind string) string {
		return "storage: {resources: {requests: {storage: 1Gi}}, dataSourceRef: {apiGroup: example.org, kind: " + kind + ", name: fresh}}"
	}
	s.apply(t, own, template("box", poured("Milk")))
	s.apply(t, own, template("unlisted", poured("Tea")))
	s.becomes(t, own, "box", ".status.volumes[0]", `"kind":"Milk.example.org"`, `"state":"Unknown"`, `"reason":"NotServed"`)
	s.becomes(t, own, "unlisted", ".status.volumes[0]", `"state":"Unknown"`, `"reason":"NotRead"`,
		"the manager does not read objects of the kind Tea.example.org: add it to the chart's value readiness.populators")
	s.becomes(t, own, "unlisted", condition("SourcesReady"), `"status":"True"`)

	s.must(t, milkDefinition, "apply", "-f", "-")
	harness.Must(t, s.Plane, nil, "", "wait", "--for=condition=Established", "crd/milks.example.org")
	s.becomes(t, own, "box", ".status.volumes[0]", `"state":"NotFound"`, "Milk.example.org "+own+"/fresh does not exist")
	milk := func(status string) {
		t.Helper()
		s.must(t, "{apiVersion: example.org/v1, kind: Milk, metadata: {name: fresh}, status: "+status+"}", "apply", "-n", own, "-f", "-")
	}
	milk(`{conditions: [{type: Ready, status: "False", reason: Empty, message: no milk}]}`)
	s.becomes(t, own, "box", ".status.volumes[0]", `"state":"NotReady"`, `"reason":"Empty"`, "Milk.example.org "+own+"/fresh cannot be used: no milk")
	milk(`{phase: Pouring}`)
	s.becomes(t, own, "box", ".status.volumes[0]", `"state":"NotReady"`, `"reason":"Pouring"`)
	milk(`{ready: true}`)
	s.becomes(t, own, "box", ".status.volumes[0]", `"state":"Ready"`)
	s.becomes(t, own, "box", condition("SourcesReady"), `"status":"True"`)
	s.must(t, "", "delete", "crd", "milks.example.org")
	s.becomes(t, own, "box", ".status.volumes[0]", `"state":"Unknown"`, `"reason":"NotServed"`)
}
