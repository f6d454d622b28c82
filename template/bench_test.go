package template_test

import (
	"testing"

	"github.com/vmstencil/stencil/template"
)

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
