package input_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
)

// withObjects is the creation of a VirtualMachine without the values that its objects have.
func withObjects(t *testing.T) *policyinput.Case {
	t.Helper()
	return &policyinput.Case{
		Request: rego.Request{Operation: "CREATE", Kind: "VirtualMachine"},
		Object:  object(t, `{metadata: {name: web}}`),
		Secrets: []string{"hunter2", ""},
		Objects: []map[string]any{
			object(t, `{apiVersion: v1, kind: Secret, metadata: {name: web, labels: {a: b}}, type: Opaque, data: {key: aHVudGVyMg==}, stringData: {user: ada, password: hunter2}}`),
			object(t, `{apiVersion: v1, kind: Secret, metadata: {name: odd}, data: null, stringData: hunter2}`),
			object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, annotations: {b64: aHVudGVyMg==}}, data: {open: sesame, password: hunter2}}`),
		},
	}
}

func TestPoliciesSeeNoValuesOfSecrets(t *testing.T) {
	c := withObjects(t)
	before, _ := json.Marshal(c.Objects)
	got := c.Document().Objects
	want := []map[string]any{
		object(t, `{apiVersion: v1, kind: Secret, metadata: {name: web, labels: {a: b}}, type: Opaque, data: {key: "***"}, stringData: {user: "***", password: "***"}}`),
		object(t, `{apiVersion: v1, kind: Secret, metadata: {name: odd}, data: null, stringData: {}}`),
		c.Objects[2],
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if after, _ := json.Marshal(c.Objects); string(after) != string(before) {
		t.Errorf("the objects have changed: %s", after)
	}
}

func TestTheDecisionLogHasNoSensitiveValuesOfObjects(t *testing.T) {
	c := withObjects(t)
	document := c.Document()
	input, err := rego.NewInput(document)
	if err != nil {
		t.Fatal(err)
	}
	record, err := c.Record("uid", policyset.Decision{Denials: []policyset.Violation{{Finding: rego.Finding{Message: "it is hunter2"}}}}, document, input)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(record)
	if strings.Contains(string(raw), "hunter2") || strings.Contains(string(raw), "aHVudGVyMg") || !strings.Contains(string(raw), "sesame") {
		t.Errorf("the record is %s", raw)
	}
	if diff := cmp.Diff([]string{"objects[2].data.password", "objects[2].metadata.annotations.b64"}, record.Masked); diff != "" {
		t.Errorf("masked (-want +got):\n%s", diff)
	}
}
