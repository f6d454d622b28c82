package template_test

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
)

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
	compiled, err := template.Compile(readTemplate(tb, name), options...)
	if err != nil {
		tb.Fatal(err)
	}
	return compiled
}

func BenchmarkCompile(b *testing.B) {
	fedora := readTemplate(b, "fedora.yaml")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := template.Compile(fedora); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBind(b *testing.B) {
	compiled := compileFile(b, "fedora.yaml")
	values := map[string]string{"NAME": "web-1", "INSTANCETYPE": "u1.large"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := compiled.Bind(values); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	compiled := compileFile(b, "fedora.yaml")
	binding, err := compiled.Bind(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := compiled.Render(binding); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBindRender(b *testing.B) {
	compiled := compileFile(b, "fedora.yaml")
	values := map[string]string{"INSTANCETYPE": "u1.large"}
	b.ReportAllocs()
	for b.Loop() {
		binding, err := compiled.Bind(values)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := compiled.Render(binding); err != nil {
			b.Fatal(err)
		}
	}
}
