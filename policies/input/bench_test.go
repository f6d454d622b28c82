package input_test

import (
	"testing"

	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
)

// The cost of a request that at least one policy matches, without the evaluation: the VirtualMachine is compared with its
// template, and the input is converted.
func BenchmarkDocument(b *testing.B) {
	c := full(b)
	fresh := *c
	b.Run("gathered", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c := fresh
			c.Document()
		}
	})
	b.Run("converted", func(b *testing.B) {
		document := c.Document()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := rego.NewInput(document); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("query", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Query()
		}
	})
	b.Run("masked", func(b *testing.B) {
		document := c.Document()
		b.ReportAllocs()
		for b.Loop() {
			masked, _ := c.Mask(document)
			if _, err := policyinput.EncodeInput(masked); err != nil {
				b.Fatal(err)
			}
		}
	})
}
