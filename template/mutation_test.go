package template_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
)

// mutator changes trees of JSON, mostly so little that they remain VirtualMachines.
type mutator struct {
	*rand.Rand
}

func (m mutator) pick(from []string) string { return from[m.IntN(len(from))] }

var (
	mutatedTexts = []string{"${A}", "${{A}}", "${B}", "${{B}}", "${S}", "${{S}}", "${I}", "${{I}}", "${A}Gi", "x${B}y${A}", "x${A|yaml}${B}", "${A|base64}-${A|sh}", "${S|json}", "$${A}", "a", "", "4Gi", "true", "2006-01-02T15:04:05Z"}
	mutatedKeys  = []string{"${A}", "${B}", "a${A}", "${A|sh}", "$${A}", "name", "Name", "spec", "cores"}
	givenValues  = []string{"", "4", "true", "null", "-1", "x", "cpu", "name", `"x"`, `{"name":"x"}`, `[{"name":"x"}]`, `{"pod":{}}`, "1.5", "5Gi", "\n\"", "${B}"}
)

func (m mutator) value() any {
	switch m.IntN(8) {
	case 0:
		return nil
	case 1:
		return m.IntN(2) == 0
	case 2:
		return json.Number(m.pick([]string{"0", "-1", "4", "1.5", "1e2", "99999999999", "18446744073709551616"}))
	case 3:
		return []any{}
	case 4:
		return map[string]any{}
	default:
		return m.pick(mutatedTexts)
	}
}

// spoil returns tree with about rate of its values and keys changed.
func (m mutator) spoil(tree any, rate float64) any {
	if m.Float64() < rate {
		return m.value()
	}
	switch tree := tree.(type) {
	case map[string]any:
		spoilt := map[string]any{}
		// In order, so that a seed is reproducible.
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			key := name
			if m.Float64() < rate/4 {
				key = m.pick(mutatedKeys)
			}
			spoilt[key] = m.spoil(tree[name], rate)
		}
		return spoilt
	case []any:
		spoilt := make([]any, 0, len(tree)+1)
		for _, item := range tree {
			spoilt = append(spoilt, m.spoil(item, rate))
		}
		if m.Float64() < rate {
			spoilt = append(spoilt, m.value())
		}
		return spoilt
	default:
		return tree
	}
}

// TestSpoiltTemplates changes VirtualMachines with random values in all fields, and verifies the general properties of every
// one that still renders.
func TestSpoiltTemplates(t *testing.T) {
	const (
		machines = 12
		each     = 60
	)
	compiledCount, renderedCount := 0, 0
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
				causes(t, err)
				continue
			}
			compiledCount++
			for range 4 {
				secret := fmt.Sprintf("secret-%d", m.Uint64())
				values := map[string]string{"A": m.pick(givenValues), "B": m.pick(givenValues), "S": m.pick([]string{secret, `"` + secret + `"`, `{"` + secret + `":1}`})}
				binding := bound(t, compiled, values)
				rendered, err := compiled.Render(binding)
				checkError(t, err, []string{secret})
				if err != nil {
					continue
				}
				renderedCount++
				checkRendered(t, rendered)
			}
		}
	}
	t.Logf("%d of %d templates compiled, and of those %d of %d renderings succeeded", compiledCount, machines*each, renderedCount, 4*compiledCount)
	if compiledCount < machines*each/20 || renderedCount < compiledCount/4 {
		t.Error("so few survive that the test says little")
	}
}

// filledMachine returns the tree of a VirtualMachine with random values.
func filledMachine(tb testing.TB, seed int64) any {
	tb.Helper()
	encoded := mustMarshal(tb, randomMachine(seed))
	var tree map[string]any
	if err := json.Unmarshal(encoded, &tree); err != nil {
		tb.Fatal(err)
	}
	delete(tree, "status")
	return tree
}
