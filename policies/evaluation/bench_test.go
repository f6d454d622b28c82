package evaluation_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
)

var created = policyset.Query{
	Operation:       "CREATE",
	Kind:            "VirtualMachine",
	Namespace:       "shop",
	NamespaceLabels: labels.Set{"team": "shop", "kubernetes.io/metadata.name": "shop"},
	ObjectLabels:    labels.Set{"tier": "web"},
	User:            rego.UserInfo{Username: "ada", Groups: []string{"developers", "system:authenticated"}},
	HasUser:         true,
}

// BenchmarkOverhead measures the cost of a request without its policies, which do
// nothing here: to select them, to pass them to a worker with their deadlines, to
// update the statistics and to merge.
func BenchmarkOverhead(b *testing.B) {
	for _, n := range []int{1, 20, 100} {
		b.Run(fmt.Sprintf("policies=%d", n), func(b *testing.B) {
			var entries []policyset.Entry
			for i := range n {
				entries = append(entries, policyset.Entry{Policy: allowing(fmt.Sprintf("p%03d", i))})
			}
			set := policyset.NewSet(entries)
			evaluator := policyset.NewEvaluator(policyset.Options{})
			b.ReportAllocs()
			for b.Loop() {
				evaluator.Evaluate(context.Background(), set.Matching(created), nil)
			}
		})
	}
}

// BenchmarkMatching selects among policies of which half select other namespaces.
func BenchmarkMatching(b *testing.B) {
	elsewhere, err := labels.Parse("team in (bank, post)")
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1, 20, 100, 1000} {
		b.Run(fmt.Sprintf("policies=%d", n), func(b *testing.B) {
			var entries []policyset.Entry
			for i := range n {
				entry := policyset.Entry{Policy: allowing(fmt.Sprintf("p%03d", i))}
				if i%2 == 1 {
					entry.Match.Namespaces = elsewhere
				}
				entries = append(entries, entry)
			}
			set := policyset.NewSet(entries)
			b.ReportAllocs()
			for b.Loop() {
				set.Matching(created)
			}
		})
	}
}

// BenchmarkRequest measures a complete request: the input is built, policies of the
// library are selected and evaluated, and the decision is merged. Half of the
// policies in the set select other namespaces.
func BenchmarkRequest(b *testing.B) {
	ready := library(b)
	for _, n := range []int{1, 20, 100} {
		set := policyset.NewSet(several(b, ready, n))
		evaluator := policyset.NewEvaluator(policyset.Options{Deadline: time.Minute})
		b.Run(fmt.Sprintf("policies=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				input, err := rego.NewInput(document())
				if err != nil {
					b.Fatal(err)
				}
				entries := set.Matching(created)
				if decision := evaluator.Evaluate(b.Context(), entries, input); len(decision.Evaluations) != n {
					b.Fatalf("%d evaluations", len(decision.Evaluations))
				}
			}
		})
		b.Run(fmt.Sprintf("policies=%d/directly", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				input, err := rego.NewInput(document())
				if err != nil {
					b.Fatal(err)
				}
				for _, entry := range set.Matching(created) {
					ctx, cancel := context.WithTimeout(b.Context(), time.Second)
					if _, err := entry.Policy.Evaluate(ctx, input); err != nil {
						b.Fatal(err)
					}
					cancel()
				}
			}
		})
	}
}
