package render

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"

	contract "github.com/vmstencil/stencil/api/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/overrides"
)

// TestRandomManifestsEndLikeAFreshRendering applies random manifests one after another to a VM, as kubectl does, and compares its spec with the one
// that a new VM from the last manifest has.
func TestRandomManifestsEndLikeAFreshRendering(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 2))
		base := map[string]any{"template": randomTree(random, 3)}
		manifest := map[string]any{}
		stored := parse(t, trackedVM(t, encode(t, base), "", machine.Base{})).(map[string]any)
		stored["metadata"].(map[string]any)["annotations"].(map[string]any)[lastAppliedAnnotation] = encode(t, manifest)
		for step := range 5 {
			next := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"template.kubevirt.io/template-ref": "golden/fedora"}}}
			if random.IntN(4) > 0 {
				next["spec"] = map[string]any{"template": randomManifest(random, base["template"])}
			}
			sent := kubectlApply(t, manifest, next, stored)
			got, decided := decideUpdate(t, encode(t, sent), encode(t, stored), "kubectl-client-side-apply")
			if len(decided.causes) > 0 {
				t.Fatalf("seed %d, step %d: %v", seed, step, decided.causes)
			}
			after := got.(map[string]any)
			want := overrides.Merge(base, next["spec"])
			if diff := cmp.Diff(parse(t, encode(t, want)), withoutEmpty(after["spec"], want)); diff != "" {
				t.Fatalf("seed %d, step %d: from %s\nto %s\nwith the base %s\n(-want +got):\n%s", seed, step, encode(t, manifest), encode(t, next), encode(t, base), diff)
			}
			from := machine.Base{}
			note := overrides.ParseNote(machine.StringAt(machine.MapAt(after, "metadata", "annotations"), contract.AnnotationOverrides))
			if diff := cmp.Diff(parse(t, encode(t, base)), parse(t, encode(t, note.Base(after["spec"].(map[string]any), from)))); diff != "" {
				t.Fatalf("seed %d, step %d: the base (-want +got):\n%s", seed, step, diff)
			}
			stored, manifest = after, next
		}
	}
}

// kubectlApply returns the object that client-side apply sends: the stored one with the difference between the manifests.
func kubectlApply(t *testing.T, before, now, stored map[string]any) map[string]any {
	t.Helper()
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(encode(t, before)), []byte(encode(t, now)), []byte(encode(t, stored)))
	if err != nil {
		t.Fatal(err)
	}
	sent := mergePatch(stored, parse(t, string(patch)))
	object := parse(t, encode(t, sent)).(map[string]any)
	object["metadata"].(map[string]any)["annotations"].(map[string]any)[lastAppliedAnnotation] = encode(t, now)
	return object
}

// mergePatch applies a JSON Merge Patch (RFC 7396).
func mergePatch(target, patch any) any {
	changes, is := patch.(map[string]any)
	if !is {
		return patch
	}
	before, _ := target.(map[string]any)
	after := map[string]any{}
	for key, value := range before {
		after[key] = value
	}
	for key, value := range changes {
		if value == nil {
			delete(after, key)
			continue
		}
		after[key] = mergePatch(after[key], value)
	}
	return after
}

// withoutEmpty returns a value without empty maps that another lacks: what is left of a map whose members a manifest had.
func withoutEmpty(value, like any) any {
	object, is := value.(map[string]any)
	if !is {
		return value
	}
	other, _ := like.(map[string]any)
	result := map[string]any{}
	for key, below := range object {
		if m, isMap := below.(map[string]any); isMap && len(m) == 0 && other[key] == nil {
			continue
		}
		result[key] = withoutEmpty(below, other[key])
	}
	return result
}

// randomTree returns a map with scalars, maps, and lists with and without names.
func randomTree(random *rand.Rand, depth int) map[string]any {
	made := map[string]any{}
	for range random.IntN(4) + 1 {
		key := string(rune('a' + random.IntN(5)))
		switch kind := random.IntN(5); {
		case depth > 0 && kind == 0:
			made[key] = randomTree(random, depth-1)
		case depth > 0 && kind == 1:
			list := []any{}
			for i := range random.IntN(3) + 1 {
				item := randomTree(random, depth-1)
				item["name"] = fmt.Sprintf("i%d", i)
				list = append(list, item)
			}
			made[key] = list
		case kind == 2:
			made[key] = []any{fmt.Sprint(random.IntN(3))}
		default:
			made[key] = fmt.Sprint(random.IntN(3))
		}
	}
	return made
}

// randomManifest returns a map that overrides some of a tree, and adds to it.
func randomManifest(random *rand.Rand, tree any) map[string]any {
	of, _ := tree.(map[string]any)
	made := map[string]any{}
	for key, value := range of {
		switch value := value.(type) {
		case map[string]any:
			if random.IntN(2) == 0 {
				made[key] = randomManifest(random, value)
			}
		case []any:
			if random.IntN(2) == 0 {
				made[key] = randomItems(random, value)
			}
		default:
			if key != "name" && random.IntN(3) == 0 {
				made[key] = "mine" + fmt.Sprint(random.IntN(2))
			}
		}
	}
	if random.IntN(2) == 0 {
		made["own"] = map[string]any{"x": fmt.Sprint(random.IntN(3))}
	}
	return made
}

func randomItems(random *rand.Rand, list []any) []any {
	if _, named := list[0].(map[string]any); !named {
		return []any{"mine"}
	}
	items := []any{}
	for _, item := range list {
		if random.IntN(2) == 0 {
			made := randomManifest(random, item)
			made["name"] = overrides.NameOf(item)
			items = append(items, made)
		}
	}
	if len(items) == 0 || random.IntN(2) == 0 {
		items = append(items, map[string]any{"name": fmt.Sprintf("own%d", random.IntN(2)), "x": "1"})
	}
	return items
}
