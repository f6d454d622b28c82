package rego

import (
	"context"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/internal/testfile"
)

// testCompiler is shared by the tests, as it is by a process.
var testCompiler = func() *Compiler {
	compiler, err := NewCompiler()
	if err != nil {
		panic(err)
	}
	return compiler
}()

func mustCompile(t testing.TB, d Definition) *Policy {
	t.Helper()
	if d.Name == "" {
		d.Name = "test"
	}
	policy, err := testCompiler.Compile(context.Background(), d)
	if err != nil {
		t.Fatalf("compiling: %v", err)
	}
	return policy
}

func mustInput(t testing.TB, d Document) *Input {
	t.Helper()
	input, err := NewInput(d)
	if err != nil {
		t.Fatalf("converting the input: %v", err)
	}
	return input
}

// vm is a user-specified VirtualMachine of about 3 KB.
func vm(t testing.TB) map[string]any {
	t.Helper()
	text := testfile.Read(t, "testdata/machine.yaml")
	var object map[string]any
	if err := yaml.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func vmDocument(t testing.TB) Document {
	return Document{
		Request: Request{
			Operation: "CREATE", Kind: KindVirtualMachine, Namespace: "team-a", Name: "web-1",
			UserInfo: UserInfo{Username: "jane", Groups: []string{"team-a", "system:authenticated"}},
		},
		Object:    vm(t),
		Namespace: Namespace{Name: "team-a", Labels: map[string]string{"team": "a"}},
		Template: &Template{
			Namespace: "golden", Name: "fedora", Labels: map[string]string{"os": "fedora"},
			Parameters: []TemplateParameter{{Name: "NAME", Required: true}, {Name: "PASSWORD", Sensitive: true, Value: "***"}},
		},
		Parameters: map[string]string{"NAME": "web-1", "PASSWORD": "***"},
	}
}
