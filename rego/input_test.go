package rego

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestInputIsTheDocument(t *testing.T) {
	in := mustInput(t, Document{
		Request: Request{
			Operation: "UPDATE", Kind: "VirtualMachine", Namespace: "a", Name: "b", DryRun: true,
			UserInfo: UserInfo{Username: "u", UID: "1", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v", "w"}}},
			Time:     time.Date(2026, 11, 21, 20, 0, 0, 0, time.FixedZone("X", 3600)),
		},
		Object: map[string]any{
			"metadata": map[string]any{"name": "b", "managedFields": []any{map[string]any{"manager": "kubectl"}}},
			"spec": map[string]any{
				"int64": int64(7), "int": 8, "whole": 9.0, "half": 0.5, "large": 1e300, "big": int64(math.MaxInt64), "number": json.Number("12.5"),
				"null": nil, "true": true, "list": []any{"x", int64(1)}, "texts": []string{"y"}, "map": map[string]string{"k": "v"},
			},
		},
		OldObject: map[string]any{},
		Namespace: Namespace{Name: "a", Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"n": "2"}},
		Template: &Template{
			Namespace: "t", Name: "n", Labels: map[string]string{"x": "y"},
			Parameters: []TemplateParameter{{Name: "P", Required: true, Enum: []string{"1"}}},
		},
		Parameters:   map[string]string{"P": "1"},
		Instancetype: map[string]any{"kind": "VirtualMachineInstancetype"},
		Objects:      []map[string]any{{"kind": "Secret"}, {"kind": "Service", "metadata": map[string]any{"managedFields": []any{}}, "spec": map[string]any{"port": 80.0}}},
	})
	want := `{"instancetype": {"kind": "VirtualMachineInstancetype"}, ` +
		`"namespace": {"annotations": {"n": "2"}, "labels": {"l": "1"}, "name": "a"}, ` +
		`"object": {"metadata": {"name": "b"}, "spec": {"big": 9223372036854775807, "half": 0.5, "int": 8, "int64": 7, "large": 1e+300, "list": ["x", 1], "map": {"k": "v"}, "null": null, "number": 12.5, "texts": ["y"], "true": true, "whole": 9}}, ` +
		`"objects": [{"kind": "Secret"}, {"kind": "Service", "metadata": {}, "spec": {"port": 80}}], ` +
		`"oldObject": {}, "parameters": {"P": "1"}, "preference": null, ` +
		`"request": {"dryRun": true, "kind": "VirtualMachine", "name": "b", "namespace": "a", "operation": "UPDATE", "requestKind": "VirtualMachine", "time": "2026-11-21T19:00:00Z", "userInfo": {"extra": {"k": ["v", "w"]}, "groups": ["g"], "uid": "1", "username": "u"}}, ` +
		`"template": {"annotations": {}, "labels": {"x": "y"}, "name": "n", "namespace": "t", "parameters": [{"description": "", "displayName": "", "enum": ["1"], "generate": "", "name": "P", "pattern": "", "required": true, "sensitive": false, "type": "string", "value": ""}]}}`
	if diff := cmp.Diff(want, in.term.String()); diff != "" {
		t.Error(diff)
	}
}

func TestNewInputLeavesTheDocumentAlone(t *testing.T) {
	document := vmDocument(t)
	document.Object["metadata"].(map[string]any)["managedFields"] = []any{"x"}
	before, _ := json.Marshal(document)
	in := mustInput(t, document)
	if after, _ := json.Marshal(document); string(before) != string(after) {
		t.Error("the document has changed")
	}
	if strings.Contains(in.term.String(), "managedFields") {
		t.Error("managedFields reach policies")
	}
}

func TestWhatIsNotJSONIsRefused(t *testing.T) {
	deep := map[string]any{}
	for range 200 {
		deep = map[string]any{"x": deep}
	}
	for name, tc := range map[string]struct {
		value any
		want  string
	}{
		"a struct":               {struct{}{}, "input.object: a value of type struct {} is not JSON"},
		"not a number":           {math.NaN(), "input.object: NaN is not JSON"},
		"infinity":               {math.Inf(1), "input.object: +Inf is not JSON"},
		"a number without end":   {json.Number("1e1000000000"), "input.object: numbers have at most 512 digits and exponents of at most 400"},
		"a value without bottom": {deep, "input.object: a value is nested more than 128 deep"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewInput(Document{Object: map[string]any{"spec": []any{tc.value}}})
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTheDigestOfAnInputIsOfItsContent(t *testing.T) {
	first, second := mustInput(t, vmDocument(t)), mustInput(t, vmDocument(t))
	if first.Digest() != second.Digest() || !strings.HasPrefix(first.Digest(), "sha256:") {
		t.Errorf("%s, %s", first.Digest(), second.Digest())
	}
	document := vmDocument(t)
	document.Request.DryRun = true
	if mustInput(t, document).Digest() == first.Digest() {
		t.Error("another input has the same digest")
	}
}

func TestNumbersThatKubernetesAndJSONDecodeAreTheSame(t *testing.T) {
	policy := mustCompile(t, Definition{Source: "package p\n\ndeny contains \"x\" if input.object.spec.template.spec.domain.cpu.cores == 4\n"})
	for _, cores := range []any{int64(4), 4, int32(4), 4.0, json.Number("4")} {
		in := mustInput(t, Document{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"domain": map[string]any{"cpu": map[string]any{"cores": cores}}}}}}})
		got, err := policy.Evaluate(context.Background(), in)
		if err != nil || len(got.Deny) != 1 {
			t.Errorf("%T: %v, %v", cores, got, err)
		}
	}
}
