package evaluation_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
)

// others is a source with a number of VirtualMachines for each namespace.
type others struct{ byNamespace string }

func (o others) Value(of rego.ObjectKey) (*rego.Value, error) {
	if of.Namespace == "" {
		return nil, errors.New("the object has no namespace")
	}
	return rego.NewValue(map[string]any{"count": int64(strings.Count(o.byNamespace, of.Namespace))})
}

func TestValuesThatDependOnTheObjectAreBoundForEachEvaluation(t *testing.T) {
	reading, err := compiler(t).Compile(t.Context(), rego.Definition{
		Name: "counting", Source: "package p\n\ndeny contains sprintf(\"%d others\", [data.cluster.all.count]) if data.cluster.all.count > 1\n",
		Data: []rego.Reference{{Name: "all", VirtualMachines: &rego.VirtualMachines{}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	bound := reading.WithData([]rego.Binding{{Name: "all", Source: others{"a a a b"}}})
	if missing := policyset.MissingData(bound); missing != nil {
		t.Errorf("a value that depends on the object is missing: %v", missing)
	}
	entries := []policyset.Entry{{Policy: denying("other", "no")}, {Policy: bound}}
	evaluator := policyset.NewEvaluator(policyset.Options{})
	for _, tc := range []struct {
		namespace, value, message string
		result                    policyset.Result
	}{
		{"a", `{"count":3}`, "3 others", policyset.ResultDeny},
		{"b", `{"count":1}`, "", policyset.ResultAllow},
		{"", "", "could not be evaluated: data.cluster.all has no value: the object has no namespace", policyset.ResultError},
	} {
		in, err := rego.NewInput(rego.Document{Request: rego.Request{Kind: "VirtualMachine", Namespace: tc.namespace, Name: "web"}})
		if err != nil {
			t.Fatal(err)
		}
		decision := evaluator.Evaluate(t.Context(), entries, in)
		var messages []string
		for _, v := range decision.Denials[1:] {
			messages = append(messages, v.Message)
		}
		evaluated := decision.Evaluations[1]
		value := ""
		if evaluated.Data[0].Value != nil {
			value = string(evaluated.Data[0].Value.JSON())
		}
		if got := fmt.Sprintln(value, strings.Join(messages, "; "), evaluated.Result); got != fmt.Sprintln(tc.value, tc.message, tc.result) {
			t.Errorf("namespace %q: got %s", tc.namespace, got)
		}
		if decision.Evaluations[0].Data != nil {
			t.Errorf("a policy without data has read %v", decision.Evaluations[0].Data)
		}
	}
	if entries[1].Policy != policyset.Policy(bound) {
		t.Error("the entries of the caller were changed")
	}
}
