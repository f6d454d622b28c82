package render_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/vmstencil/stencil/webhooks/render"
)

var (
	secretLines = regexp.MustCompile(`^token: [a-z]{8}\npassword: [^\x00-\x1f]+$`)
	serials     = regexp.MustCompile(`^[0-9]{6}$`)
)

// plainly replaces what users may choose in a VM of the template stall by constants.
func plainly(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	var vm map[string]any
	if err := json.Unmarshal(raw, &vm); err != nil {
		t.Fatal(err)
	}
	delete(vm, "metadata")
	guest := guest(vm)
	if domain, is := guest["domain"].(map[string]any); is {
		if firmware, is := domain["firmware"].(map[string]any); is && serials.MatchString(fmt.Sprint(firmware["serial"])) {
			firmware["serial"] = "serial"
		}
	}
	if volumes, is := guest["volumes"].([]any); is && len(volumes) == 1 {
		if volume, is := volumes[0].(map[string]any); is {
			if init, is := volume["cloudInitNoCloud"].(map[string]any); is && secretLines.MatchString(fmt.Sprint(init["userData"])) {
				init["userData"] = "user data"
			}
		}
	}
	withoutEmpty(vm)
	return vm
}

// withoutEmpty removes lists and maps that are empty, which approvals do not tell from none.
func withoutEmpty(tree any) {
	switch value := tree.(type) {
	case map[string]any:
		for key, below := range value {
			if withoutEmpty(below); isEmpty(below) {
				delete(value, key)
			}
		}
	case []any:
		for _, below := range value {
			withoutEmpty(below)
		}
	}
}

func isEmpty(value any) bool {
	object, isObject := value.(map[string]any)
	list, isList := value.([]any)
	return isObject && len(object) == 0 || isList && len(list) == 0
}

// mutate changes one place in a tree.
func mutate(random *rand.Rand, tree any) any {
	texts := []any{"", "x", "north-2", "web-2", "123457", "token: bcdefghi\npassword: other", "token: BCDEFGHI\npassword: other", "Always", json.Number("2"), true, []any{}, map[string]any{"a": "b"}}
	other := func() any { return texts[random.IntN(len(texts))] }
	switch value := tree.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(value))
		result := maps.Clone(value)
		switch n := random.IntN(10); {
		case n == 0 || len(keys) == 0:
			result[[]string{"nodeSelector", "name", "serial", "image", "x"}[random.IntN(5)]] = other()
		case n == 1:
			delete(result, keys[random.IntN(len(keys))])
		default:
			key := keys[random.IntN(len(keys))]
			result[key] = mutate(random, value[key])
		}
		return result
	case []any:
		result := slices.Clone(value)
		if n := random.IntN(6); n == 0 || len(result) == 0 {
			return append(result, map[string]any{"name": "x", "emptyDisk": map[string]any{"capacity": "1Gi"}})
		} else if n == 1 {
			return append(result, result[0])
		}
		i := random.IntN(len(result))
		result[i] = mutate(random, result[i])
		return result
	default:
		return other()
	}
}

// TestChangedVMsAreNotApproved changes complete VMs at random. Whatever is approved is what the template makes, with values that users may choose.
func TestChangedVMsAreNotApproved(t *testing.T) {
	s := &fakeTemplates{}
	s.put(t, stall, 7)
	h := render.New(render.Options{
		Templates: s, Permissions: everything,
		Approvals: governing(approve(t, "{namespaces: [team-a], templates: [{namespace: golden, name: box}], parameters: [{name: PASSWORD, anyValue: true}]}")),
	})
	want := plainly(t, []byte(complete(t, nil, nil)))
	approved, denied := 0, 0
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 1))
		sent := complete(t, nil, func(vm, annotations map[string]any) {
			if seed%2 == 0 {
				delete(annotations, processedKey)
			}
			for range 1 + random.IntN(2) {
				if spec, is := mutate(random, vm["spec"]).(map[string]any); is {
					vm["spec"] = spec
				}
			}
			if random.IntN(4) == 0 {
				annotations[recordKey] = `{"namespace":"golden","name":"box","sensitive":["TOKEN","SERIAL","PASSWORD"]}`
			}
			if random.IntN(4) == 0 {
				annotations[parameterKey+[]string{"SIZE", "RACK", "PLACE"}[random.IntN(3)]] = []string{"small", "1", "north"}[random.IntN(3)]
			}
		})
		request := create(t, sent)
		response := h.Handle(t.Context(), request)
		if !response.Allowed {
			denied++
			continue
		}
		approved++
		stored, err := json.Marshal(apply(t, request, response))
		if err != nil {
			t.Fatal(err)
		}
		if got := plainly(t, stored); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: approved: %s", seed, stored)
		}
	}
	if approved < 10 || denied < 500 {
		t.Errorf("%d approved and %d denied: the test changes too much or too little", approved, denied)
	}
	t.Logf("%d approved, %d denied", approved, denied)
}
