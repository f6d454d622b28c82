package approval_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/approval"
)

// The guarantees of FuzzChanges, with objects that are generated so that overrides, names and changes overlap.
func TestOverridesAllowWhatTheyCoverAndNothingElse(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	allowed, denied := 0, 0
	for range 10_000 {
		var overrides []string
		var paths [][]string
		for range 1 + random.IntN(3) {
			text := randomOverride(random)
			overrides = append(overrides, text)
			paths = append(paths, split(text))
		}
		a := compile(t, "a", "overrides: ['"+strings.Join(unique(overrides), "', '")+"']")
		old := map[string]any{"spec": randomMap(random, 3)}
		new := runtime.DeepCopyJSON(old)
		for range 1 + random.IntN(2) {
			disturb(random, new, 4)
		}
		if changes := approval.Changes(old, new); len(changes) > 0 {
			if len(uncovered(a, changes)) == 0 {
				allowed++
			} else {
				denied++
			}
		}
		holdNothingElse(t, a, paths, old, new)

		within := runtime.DeepCopyJSON(old)
		edit(random, within, paths[random.IntN(len(paths))])
		holdAllowed(t, a, old, within)
	}
	if allowed < 500 || denied < 500 {
		t.Errorf("%d changes allowed and %d denied say little", allowed, denied)
	}
}

func uncovered(a *approval.Approval, paths []approval.Path) []approval.Path {
	var rest []approval.Path
	for _, path := range paths {
		if !a.Overridable(path) {
			rest = append(rest, path)
		}
	}
	return rest
}

func unique(texts []string) []string {
	seen := map[string]bool{}
	var kept []string
	for _, text := range texts {
		if !seen[text] {
			kept = append(kept, text)
		}
		seen[text] = true
	}
	return kept
}

func randomOverride(random *rand.Rand) string {
	text := "spec"
	for range 1 + random.IntN(3) {
		text += []string{".a", ".x", ".l", ".l", ".*", "[*]", "[name=a]", "[name=b]"}[random.IntN(8)]
	}
	return text
}

func randomMap(random *rand.Rand, depth int) map[string]any {
	m := map[string]any{}
	for range random.IntN(4) {
		m[[]string{"a", "x", "l"}[random.IntN(3)]] = randomValue(random, depth-1)
	}
	return m
}

func randomValue(random *rand.Rand, depth int) any {
	if depth <= 0 {
		return randomScalar(random)
	}
	switch random.IntN(8) {
	case 0:
		return randomScalar(random)
	case 1, 2, 3:
		return randomMap(random, depth)
	case 4:
		return []any{randomValue(random, depth-1), randomMap(random, depth-1)}
	default:
		var list []any
		for _, name := range []string{"a", "b", "c"}[:random.IntN(4)] {
			item := randomMap(random, depth-1)
			item["name"] = name
			list = append(list, item)
		}
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return list
	}
}

func randomScalar(random *rand.Rand) any {
	return []any{"s", "t", true, nil, json.Number("1"), json.Number("1.0")}[random.IntN(6)]
}

// disturb changes something somewhere in a value, in place where it can.
func disturb(random *rand.Rand, value any, depth int) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			if random.IntN(len(v)) == 0 {
				v[key] = disturb(random, v[key], depth-1)
				return v
			}
		}
		v["a"] = randomValue(random, max(depth, 1))
		return v
	case []any:
		if len(v) == 0 || random.IntN(3) == 0 {
			break
		}
		i := random.IntN(len(v))
		switch random.IntN(5) {
		case 0:
			return append(v[:i:i], v[i+1:]...)
		case 1:
			return append(v, map[string]any{"name": fmt.Sprint("n", random.IntN(3))})
		case 2:
			v[0], v[i] = v[i], v[0]
		default:
			v[i] = disturb(random, v[i], depth-1)
		}
		return v
	}
	return randomValue(random, max(depth, 1))
}
