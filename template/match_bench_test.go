package template_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/vmstencil/stencil/template"
)

// readMachine reads a VirtualMachine as the webhooks do.
func readMachine(tb testing.TB, name string) map[string]any {
	tb.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	var vm map[string]any
	if err := decoder.Decode(&vm); err != nil {
		tb.Fatal(err)
	}
	return vm
}

// BenchmarkMatchFedora compares a stored VirtualMachine with the template it was
// rendered from.
func BenchmarkMatchFedora(b *testing.B) {
	compiled, vm := compileFile(b, "fedora.yaml"), readMachine(b, "fedora-stored.json")
	b.ReportAllocs()
	for b.Loop() {
		found, err := compiled.Match(vm)
		if err != nil || !found.Matches() {
			b.Fatal(err, found.Differences())
		}
	}
}

// BenchmarkMatchHardest shows, by the time per byte, that the hardest comparisons
// take time in proportion to their input.
func BenchmarkMatchHardest(b *testing.B) {
	for _, tc := range hardest {
		for size := 1 << 12; size <= 1<<18; size *= 4 {
			object, vm := tc.problem(size)
			compiled, err := template.Compile(object)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/%d", tc.name, size), func(b *testing.B) {
				for b.Loop() {
					if _, err := compiled.Match(vm); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size), "ns/byte")
			})
		}
	}
}
