package policyeval_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/vmstencil/stencil/internal/objects"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/webhooks/internal/policyeval"
)

func TestPoliciesSeeTheObjectsOfANewVM(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	keys, _ := objects.Keys(nil).Renewed(now, func(string) bool { return false })
	record := `{"namespace":"golden","name":"box","uid":"uid","generation":7}`
	text, err := objects.Pending{Sealed: now, Sensitive: []string{"open-sesame"}, Objects: []objects.Object{
		{Version: "v1", Resource: "secrets", Manifest: json.RawMessage(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"web-1"},"stringData":{"password":"open-sesame"}}`)},
		{Version: "v1", Resource: "services", Manifest: json.RawMessage(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web-1"},"spec":{"type":"LoadBalancer","ports":[{"port":80}]}}`)},
	}}.Seal(keys, objects.Binding{Namespace: "team-a", Name: "web-1", Record: record})
	if err != nil {
		t.Fatal(err)
	}
	pending := strings.Replace(web, "  annotations:\n", "  annotations:\n    objects.template.kubevirt.io/pending: "+text+"\n", 1)
	const what = `[[o.kind, o.metadata.name, object.get(o, "stringData", {}), object.get(o, ["spec", "ports", 0, "port"], 0)] | some o in input.objects]`
	for _, tc := range []struct {
		name        string
		operation   admissionv1.Operation
		kind        string
		object, old string
		what        string
		unused      bool
		keyless     bool
		want        string
		wantErr     string
	}{
		{name: "at its creation, without values of Secrets", operation: admissionv1.Create, object: pending, what: what, want: `[["Secret", "web-1", {"password": "***"}, 0], ["Service", "web-1", {}, 80]]`},
		{name: "of a template without objects", operation: admissionv1.Create, object: web, what: "input.objects", want: "[]"},
		{name: "not at an update", operation: admissionv1.Update, object: strings.Replace(pending, "app: web", "app: db", 1), old: pending, what: "input.objects", want: "[]"},
		{name: "not when it is deleted", operation: admissionv1.Delete, old: pending, what: "input.objects", want: "[]"},
		{name: "not of an instance", operation: admissionv1.Create, kind: "VirtualMachineInstance", object: pending, what: "input.objects", want: "[]"},
		{name: "a failing function does not show a value", operation: admissionv1.Create, object: pending, what: `json.unmarshal(input.objects[1].spec.type)`, want: `could not be evaluated: 3:30: json.unmarshal failed`},
		{name: "objects that cannot be read", operation: admissionv1.Create, object: pending, what: "1", keyless: true, wantErr: "reading the objects of the template: the key that encrypted them does not exist"},
		{name: "which matters only where a policy applies", operation: admissionv1.Create, object: pending, what: "1", keyless: true, unused: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.kind == "" {
				tc.kind = "VirtualMachine"
			}
			entry := tell(t, tc.what, "VirtualMachine")
			if tc.unused {
				entry.Match.Templates = []policyset.TemplateMatch{{Namespace: "golden", Name: "other"}}
			}
			evaluator := evaluatorOf(t, policies(entry), func(o *policyeval.Options) {
				o.Objects = &objects.Reader{Now: func() time.Time { return now }, Keys: func() objects.Keys {
					if tc.keyless {
						return nil
					}
					return keys
				}}
			})
			decision, err := evaluator.Evaluate(t.Context(), request(t, tc.operation, tc.kind, tc.object, tc.old), nil)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.wantErr {
				t.Fatalf("error %q, want %q", got, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, strings.Join(messages(decision.Denials), "; ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
