package proofs

import (
	"fmt"
	"testing"

	templatecache "github.com/vmstencil/stencil/cache/templates"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/policies/library"
	"github.com/vmstencil/stencil/policies/spec"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
	"github.com/vmstencil/stencil/rego"
)

// BenchmarkThousandTemplates decides the policies of the library for 1 000 templates with 16 combinations of values that an approval allows: all at the
// start, one policy after its update, and none if nothing has changed.
func BenchmarkThousandTemplates(b *testing.B) {
	var templates []*templatecache.Template
	for i := range 1_000 {
		templates = append(templates, vmt(b, fmt.Sprintf("box-%03d", i), box))
	}
	compiler, err := rego.NewCompiler()
	if err != nil {
		b.Fatal(err)
	}
	objects, err := library.Policies()
	if err != nil {
		b.Fatal(err)
	}
	var entries []policyset.Entry
	for _, object := range objects {
		parsed, causes := spec.Read(object)
		if len(causes) > 0 {
			b.Fatal(causes)
		}
		compiled, err := compiler.Compile(b.Context(), parsed.Definition)
		if err != nil {
			b.Fatal(err)
		}
		e := parsed.Entry(compiled)
		e.Enforcement = policyset.EnforcementDeny
		entries = append(entries, e)
	}
	w := newWorld(templates, entries...)
	w.approve(b, "a", "namespaces: [team-a]\ntemplates: [{namespace: golden, selector: {}}]\nparameters: [{name: CORES, maximum: 8}, {name: SIZE, anyValue: true}]")
	decide := func(r *Reconciler) {
		w.evaluated = map[string]int{}
		if _, err := r.Reconcile(b.Context(), coverage.Cluster); err != nil {
			b.Fatal(err)
		}
	}
	r := w.reconciler()
	decide(r)
	w.store(b)
	var updates []*policyset.Set
	for i := range 100 {
		updates = append(updates, policyset.NewSet(append(entries, entry(b, "p", over16+fmt.Sprintf(" + %d", i)))))
	}
	b.Run("all policies", func(b *testing.B) {
		for b.Loop() {
			decide(w.reconciler())
		}
	})
	b.Run("one policy", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			w.set = updates[i%len(updates)]
			decide(r)
		}
	})
	b.Run("nothing", func(b *testing.B) {
		for b.Loop() {
			decide(r)
		}
	})
}
