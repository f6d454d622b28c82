package rego_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/rego"
)

// others is a source with as many VirtualMachines as its number, plus the length of the name.
type others int

func (o others) Value(of rego.ObjectKey) (*rego.Value, error) {
	if of.Namespace == "" {
		return nil, errors.New("the object has no namespace")
	}
	return rego.NewValue(map[string]any{"count": int64(o) + int64(len(of.Name)), "kind": of.Kind, "namespace": of.Namespace})
}

var perObject = []rego.Reference{{Name: "limit", ConfigMap: "a", Key: "b"}, {Name: "others", VirtualMachines: &rego.VirtualMachines{}}}

func inputOf(t testing.TB, request rego.Request) *rego.Input {
	t.Helper()
	in, err := rego.NewInput(rego.Document{Request: request, Object: map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestDataPerObject(t *testing.T) {
	compiled := compileDefinition(t, rego.Definition{Name: "p", Source: "package p\n\nimport data.cluster\n\nlimit := cluster.limit\n\nfull if cluster.others.count >= limit\n\ntwice := 2 * cluster[\"others\"].count\n\ndeny contains sprintf(\"%d of %d, %d\", [cluster.others.count, limit, twice]) if full\n", Data: perObject})
	limit := rego.Binding{Name: "limit", Value: valueOf(t, 5)}
	policy := compiled.WithData([]rego.Binding{limit, {Name: "others", Source: others(2)}})
	for name, tc := range map[string]struct {
		request rego.Request
		deny    []string
		err     string
	}{
		"below":                     {request: rego.Request{Kind: "VirtualMachine", Namespace: "a", Name: "x"}},
		"above":                     {request: rego.Request{Kind: "VirtualMachine", Namespace: "a", Name: "xxxx"}, deny: []string{"6 of 5, 12"}},
		"an object of no namespace": {request: rego.Request{Kind: "VirtualMachine", Name: "x"}, err: "data.cluster.others has no value: the object has no namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(t, tc.request)
			bound := policy.For(in)
			result, err := bound.Evaluate(t.Context(), in)
			_, errExplain := bound.Explain(t.Context(), in)
			if tc.err != "" {
				for _, err := range []error{err, errExplain} {
					if missing := (*rego.DataError)(nil); !errors.As(err, &missing) || err.Error() != tc.err {
						t.Errorf("got %v, want %s", err, tc.err)
					}
				}
				return
			}
			if err != nil || errExplain != nil {
				t.Fatal(err, errExplain)
			}
			if diff := cmp.Diff(tc.deny, messages(result.Deny)); diff != "" {
				t.Error(diff)
			}
			if again := bound.For(in); again != bound {
				t.Error("a policy with all values is bound again")
			}
			if got := string(bound.Data()[1].Value.JSON()); !strings.Contains(got, `"namespace":"a"`) || bound.Digest() != policy.Digest() {
				t.Errorf("the value is %s", got)
			}
		})
	}
	in := inputOf(t, rego.Request{Kind: "VirtualMachine", Namespace: "a"})
	if _, err := policy.Evaluate(t.Context(), in); err == nil || err.Error() != "data.cluster.others has no value: it depends on the object that is evaluated" {
		t.Errorf("not bound: %v", err)
	}
	if missing := compiled.WithData([]rego.Binding{limit, {Name: "others", Missing: "not read"}}).For(in); missing.Data()[1].Missing != "not read" {
		t.Errorf("got %+v", missing.Data())
	}
	if (rego.Binding{Name: "x", Source: others(1)}).Equal(rego.Binding{Name: "x", Source: others(2)}) || !(rego.Binding{Name: "x", Source: others(1)}).Equal(rego.Binding{Name: "x", Source: others(1)}) {
		t.Error("bindings with sources are not compared by source")
	}
}

// The kind is the one in the request: the instance of a VirtualMachine has the name of one, but a pool has not.
func TestTheKindOfTheRequestIsThatOfTheObject(t *testing.T) {
	policy := compileDefinition(t, rego.Definition{Name: "p", Source: "package p\n\ndeny contains sprintf(\"%v\", [data.cluster.others]) if true\n", Data: []rego.Reference{{Name: "others", VirtualMachines: &rego.VirtualMachines{}}}}).
		WithData([]rego.Binding{{Name: "others", Source: others(0)}})
	for want, request := range map[string]rego.Request{
		"VirtualMachine":     {Kind: "VirtualMachine", Namespace: "a"},
		"VirtualMachinePool": {Kind: "VirtualMachine", RequestKind: "VirtualMachinePool", Namespace: "a"},
	} {
		if got := string(policy.For(inputOf(t, request)).Data()[0].Value.JSON()); !strings.Contains(got, `"kind":"`+want+`"`) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestDataPerObjectIsTyped(t *testing.T) {
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	references := []rego.Reference{{Name: "gpus", VirtualMachines: &rego.VirtualMachines{Selector: "gpu"}}, {Name: "quota", ResourceQuota: "team"}}
	for body, want := range map[string]string{
		"data.cluster.gpus.count + data.cluster.gpus.cpus + data.cluster.gpus.memory + data.cluster.gpus.unknown > 1": "",
		`data.cluster.quota.hard["limits.memory"] == "1Gi"`:                                                           "",
		"data.cluster.quota.used.pods > data.cluster.quota.hard.pods":                                                 "",
		"data.cluster.gpus.cuont > 1":                                                                                 "cuont",
		`data.cluster.gpus.count == "1"`:                                                                              "number",
		"data.cluster.quota.limits.x > 1":                                                                             "limits",
		"data.cluster.gpu.count > 1":                                                                                  "spec.data has no entry gpu; did you mean gpus?",
	} {
		_, err := compiler.Compile(t.Context(), rego.Definition{Name: "p", Source: "package p\n\ndeny contains \"x\" if " + body + "\n", Data: references})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", body, err, want)
		}
	}
	// The source is the same, and what it reads is not.
	source := "package p\n\nname := data.cluster.x.name\n\ndeny contains \"x\" if name\n"
	ofConfigMap := compileDefinition(t, rego.Definition{Name: "p", Source: source, Data: []rego.Reference{{Name: "x", ConfigMap: "a", Key: "b"}}})
	if _, err := compiler.Compile(t.Context(), rego.Definition{Name: "p", Source: source, Data: []rego.Reference{{Name: "x", ConfigMap: "a", Key: "b"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := compiler.Compile(t.Context(), rego.Definition{Name: "p", Source: source, Data: []rego.Reference{{Name: "x", VirtualMachines: &rego.VirtualMachines{}}}}); err == nil {
		t.Error("a program of other data was reused")
	}
	if got := ofConfigMap.Digest(); got != "sha256:0fa24055aa60a0448aaffa472999ca91228d31c6937aac314587d1f5e39d0e7a" {
		t.Errorf("the digest of a policy that reads a ConfigMap has changed: %s", got)
	}
}

// Values change while a policy is evaluated by several requests: each has its own.
func TestDataPerObjectOfSeveralRequests(t *testing.T) {
	policy := compileDefinition(t, rego.Definition{Name: "p", Source: "package p\n\ncount := data.cluster.others.count\n\ndeny contains sprintf(\"%d\", [count]) if true\n", Data: []rego.Reference{{Name: "others", VirtualMachines: &rego.VirtualMachines{}}}}).
		WithData([]rego.Binding{{Name: "others", Source: others(0)}})
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			in := inputOf(t, rego.Request{Kind: "VirtualMachine", Namespace: "a", Name: strings.Repeat("x", i)})
			for range 50 {
				if result, err := policy.For(in).Evaluate(t.Context(), in); err != nil || cmp.Diff([]string{fmt.Sprint(i)}, messages(result.Deny)) != "" {
					t.Errorf("got %+v, %v; want %d", result, err, i)
				}
			}
		})
	}
	running.Wait()
}
