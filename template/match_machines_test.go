package template_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
)

// throughTypes returns a VirtualMachine after decoding into the Go types of KubeVirt and encoding again.
func throughTypes(tb testing.TB, encoded []byte) map[string]any {
	tb.Helper()
	var typed virtv1.VirtualMachine
	decodeStrictly(tb, encoded, &typed)
	again := mustMarshal(tb, typed)
	return vmOf(tb, string(again))
}

// TestEveryVirtualMachineMatchesItself uses VirtualMachines with random values in all fields, before and after decoding into
// the types of KubeVirt.
func TestEveryVirtualMachineMatchesItself(t *testing.T) {
	for seed := range int64(50) {
		encoded := mustMarshal(t, randomMachine(seed))
		compiled := mustCompile(t, raw(string(encoded)))
		for name, vm := range map[string]map[string]any{"as it is": vmOf(t, string(encoded)), "through the types": throughTypes(t, encoded)} {
			found := matched(t, compiled, vm)
			if diff := cmp.Diff([]string(nil), differences(found)); diff != "" {
				t.Errorf("seed %d, %s (-want +got):\n%s", seed, name, diff)
			}
		}
	}
}

// TestSpoiltTemplatesMatch uses VirtualMachines with random values in all fields, inserts placeholders, and compares the
// rendered VirtualMachines with their templates.
func TestSpoiltTemplatesMatch(t *testing.T) {
	const (
		machines = 12
		each     = 30
	)
	compared := 0
	for seed := range int64(machines) {
		vm := filledMachine(t, seed)
		for round := range uint64(each) {
			m := mutator{rand.New(rand.NewPCG(uint64(seed), round))}
			spoilt := mustMarshal(t, m.spoil(vm, []float64{0.0005, 0.002, 0.005}[round%3]))
			object := raw(string(spoilt))
			object.Spec.Parameters = []v1beta1.Parameter{{Name: "A", Multiline: true}, {Name: "B", Value: "y", Multiline: true}, {Name: "S", Sensitive: true}, {Name: "I", Type: v1beta1.ParameterTypeInt}}
			object.Spec.ObjectLabels = map[string]string{"l": "${B}"}
			compiled, err := template.Compile(object)
			if err != nil {
				continue
			}
			for range 4 {
				values := map[string]string{"A": m.pick(givenValues), "B": m.pick(givenValues), "S": m.pick([]string{fmt.Sprint(m.Uint64()), "s", `{"s":1}`})}
				binding := bound(t, compiled, values)
				rendered, err := compiled.Render(binding)
				if err != nil {
					continue
				}
				for name, vm := range map[string]map[string]any{"as rendered": rendered.Object(), "through the types": throughTypes(t, rendered.JSON())} {
					compared++
					found := matched(t, compiled, vm)
					if diff := cmp.Diff([]string(nil), differences(found)); diff != "" {
						t.Errorf("seed %d, round %d, %s, with %q (-want +got):\n%s", seed, round, name, values, diff)
					}
				}
			}
		}
	}
	t.Logf("compared %d", compared)
	if compared < machines*each/2 {
		t.Error("so few that the test says little")
	}
}
