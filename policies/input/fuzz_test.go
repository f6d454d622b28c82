package input_test

import (
	"encoding/json"
	"strings"
	"testing"

	contract "github.com/vmstencil/stencil/api/template"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// FuzzMask checks that the value of a sensitive parameter is never in the log, wherever it
// is in a VirtualMachine, and that the logged document can be decoded.
func FuzzMask(f *testing.F) {
	f.Add([]byte(`{"spec":{"a":["x SECRET y",{"SECRET":1}],"template":{"userData":"b"}}}`), "SECRET")
	f.Add([]byte(`{"spec":{"pin":4711,"port":47110}}`), "4711")
	f.Add([]byte(`{"spec":{"true":true,"null":null}}`), "true")
	f.Add([]byte(`{"metadata":{"annotations":{"a":"\u003cSECRET\u003e\n"}}}`), "<SECRET>\n")
	f.Fuzz(func(t *testing.T, raw []byte, secret string) {
		object, err := machine.Decode(raw)
		if err != nil || object == nil || secret == "" || !json.Valid(raw) {
			return
		}
		// The marks of Mask, and text that every log contains, are no secrets.
		stars := strings.Contains(secret, "*")
		if stars && strings.Trim(secret, "*0123456789") == "" {
			return
		}
		record := machine.Record{Namespace: "golden", Name: "box", Sensitive: []string{"S"}}.String()
		vm := map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{
				contract.AnnotationParameterPrefix + "S": secret, contract.AnnotationRendered: record,
			}},
			"spec": object,
		}
		c := policyinput.Case{Request: rego.Request{Operation: "CREATE", Kind: rego.KindVirtualMachine}, Object: vm, Template: &policyinput.Template{}}
		masked, _ := c.Mask(c.Document())
		walk(t, masked.Object, secret)
		encoded, err := policyinput.EncodeInput(masked)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := policyinput.DecodeInput(encoded); err != nil {
			t.Fatalf("%v in %s", err, encoded)
		}
	})
}

// marked reports whether Mask has replaced a key.
func marked(key string) bool { return strings.HasPrefix(key, policyinput.Masked) }

func walk(t *testing.T, value any, secret string) {
	t.Helper()
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if strings.Contains(key, secret) && !marked(key) {
				t.Fatalf("key %q holds %q", key, secret)
			}
			walk(t, inner, secret)
		}
	case []any:
		for _, inner := range v {
			walk(t, inner, secret)
		}
	case string:
		if v != policyinput.Masked && strings.Contains(v, secret) {
			t.Fatalf("%q holds %q", v, secret)
		}
	case json.Number:
		if v.String() == secret {
			t.Fatalf("the number %s is %q", v, secret)
		}
	}
}
