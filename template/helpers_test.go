package template_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
)

// parse reads the spec of a template.
func parse(tb testing.TB, spec string) *v1beta1.VirtualMachineTemplate {
	tb.Helper()
	object := &v1beta1.VirtualMachineTemplate{}
	if err := yaml.UnmarshalStrict([]byte(spec), &object.Spec); err != nil {
		tb.Fatalf("the test's template is malformed: %v", err)
	}
	return object
}

// compile compiles the spec of a valid template.
func compile(tb testing.TB, spec string, options ...template.Option) *template.Compiled {
	tb.Helper()
	return mustCompile(tb, parse(tb, spec), options...)
}

func mustCompile(tb testing.TB, object *v1beta1.VirtualMachineTemplate, options ...template.Option) *template.Compiled {
	tb.Helper()
	compiled, err := template.Compile(object, options...)
	if err != nil {
		tb.Fatalf("compiling: %v", err)
	}
	return compiled
}

// bound binds values that must be valid.
func bound(tb testing.TB, compiled *template.Compiled, values map[string]string) *template.Binding {
	tb.Helper()
	binding, err := compiled.Bind(values)
	if err != nil {
		tb.Fatal(err)
	}
	return binding
}

// matched compares a VirtualMachine with a template, which must not fail; the result is of any kind.
func matched(tb testing.TB, compiled *template.Compiled, vm map[string]any, options ...template.MatchOption) *template.Match {
	tb.Helper()
	found, err := compiled.Match(vm, options...)
	if err != nil {
		tb.Fatal(err)
	}
	return found
}

func mustMarshal(tb testing.TB, value any) []byte {
	tb.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return encoded
}

func readTemplate(tb testing.TB, name string) *v1beta1.VirtualMachineTemplate {
	tb.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	object := &v1beta1.VirtualMachineTemplate{}
	if err := yaml.UnmarshalStrict(content, object); err != nil {
		tb.Fatal(err)
	}
	return object
}

func compileFile(tb testing.TB, name string, options ...template.Option) *template.Compiled {
	tb.Helper()
	return mustCompile(tb, readTemplate(tb, name), options...)
}

// render compiles, binds and renders.
func render(object *v1beta1.VirtualMachineTemplate, values map[string]string, options ...template.Option) (*template.Rendered, error) {
	compiled, err := template.Compile(object, options...)
	if err != nil {
		return nil, err
	}
	binding, err := compiled.Bind(values)
	if err != nil {
		return nil, err
	}
	return compiled.Render(binding)
}

// causes returns the causes of an error, which must be an InvalidError, as text.
func causes(tb testing.TB, err error) []string {
	tb.Helper()
	if err == nil {
		return nil
	}
	var invalid *template.InvalidError
	if !errors.As(err, &invalid) {
		tb.Fatalf("got %T (%v), want an InvalidError", err, err)
	}
	var all []string
	for _, cause := range invalid.Causes {
		all = append(all, cause.Error())
	}
	return all
}

// counting is a source of random bytes that counts up from 0, so that an alphabet is drawn in its order.
type counting struct{}

func (counting) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(i)
	}
	return len(b), nil
}
