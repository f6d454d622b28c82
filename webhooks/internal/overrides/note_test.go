package overrides_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/overrides"
)

func TestCompareAndBase(t *testing.T) {
	for _, tc := range []struct {
		name, base, spec string
		secret           []string
		want             string
	}{
		{name: "nothing differs", base: `{"a":1}`, spec: `{"a":1}`, want: ``},
		{name: "a value", base: `{"cpu":{"cores":4}}`, spec: `{"cpu":{"cores":2}}`, want: `{"spec.cpu.cores":{"value":4}}`},
		{name: "a field that the base lacks", base: `{"a":{}}`, spec: `{"a":{"b":{"c":1}}}`, want: `{"spec.a.b":{}}`},
		{name: "a field that the VM lacks", base: `{"a":{"b":{"c":1}}}`, spec: `{"a":{}}`, want: `{"spec.a.b":{"value":{"c":1}}}`},
		{name: "items", base: `{"l":[{"name":"a","x":1},{"name":"b"}]}`, spec: `{"l":[{"name":"a","x":2},{"name":"c"}]}`, want: `{"spec.l[name=a].x":{"value":1},"spec.l[name=b]":{"value":{"name":"b"}},"spec.l[name=c]":{}}`},
		{name: "a list without names", base: `{"l":["a"]}`, spec: `{"l":["a","b"]}`, want: `{"spec.l":{"value":["a"]}}`},
		{name: "an empty list", base: `{"l":[]}`, spec: `{"l":["b"]}`, want: `{"spec.l":{"value":[]}}`},
		{name: "another kind of value", base: `{"l":{"a":1}}`, spec: `{"l":"x"}`, want: `{"spec.l":{"value":{"a":1}}}`},
		{name: "null counts as nothing", base: `{}`, spec: `{"a":null}`, want: ``},
		{name: "keys that need quotes", base: `{"m":{"a.b/c":"1"}}`, spec: `{"m":{"a.b/c":"2"}}`, want: `{"spec.m[\"a.b/c\"]":{"value":"1"}}`},
		{name: "a secret", base: `{"v":{"data":"open-sesame"}}`, spec: `{"v":{"data":"x"}}`, secret: []string{"spec.v.data"}, want: `{"spec.v.data":{"hidden":"Secret"}}`},
		{name: "something with a secret in it", base: `{"v":{"data":"open-sesame"}}`, spec: `{}`, secret: []string{"spec.v.data"}, want: `{"spec.v":{"hidden":"Secret"}}`},
		{name: "something in a secret", base: `{"v":{"data":{"a":"b"}}}`, spec: `{"v":{"data":{"a":"c"}}}`, secret: []string{"spec.v"}, want: `{"spec.v.data.a":{"hidden":"Secret"}}`},
		{name: "secret places in another form", base: `{"a":1}`, spec: `{"a":2}`, secret: []string{"spec.**"}, want: `{"spec.a":{"hidden":"Secret"}}`},
		{name: "a place beside a secret", base: `{"a":1}`, spec: `{"a":2}`, secret: []string{"spec.ab"}, want: `{"spec.a":{"value":1}}`},
		{name: "starting and stopping", base: `{"runStrategy":"Always"}`, spec: `{"runStrategy":"Halted","running":true}`, want: ``},
		{name: "a run strategy elsewhere", base: `{"a":{"running":true}}`, spec: `{"a":{"running":false}}`, want: `{"spec.a.running":{"value":true}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			base, spec := parsed(t, tc.base).(map[string]any), parsed(t, tc.spec).(map[string]any)
			note := overrides.Compare(base, spec, tc.secret)
			if diff := cmp.Diff(tc.want, note.String()); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			again := overrides.ParseNote(note.String())
			var record machine.Base
			record.RunStrategy, _ = base["runStrategy"].(string)
			found := again.Base(spec, record)
			if diff := cmp.Diff(note.String(), overrides.Compare(found.(map[string]any), spec, tc.secret).String()); diff != "" {
				t.Errorf("the note of the base differs (-want +got):\n%s", diff)
			}
			if len(overrides.Unknowns(found)) == 0 && tc.name != "null counts as nothing" && tc.name != "items" {
				if diff := cmp.Diff(base, found); diff != "" {
					t.Errorf("the base (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestPlaces(t *testing.T) {
	spec := parsed(t, `{"a":"?","l":[{"name":"x","y":"?"},{"name":"z"}],"d":[{"metadata":{"name":"?"}},{"metadata":{"name":"?"}}],"m":{"a.b":"?"},"`+strings.Repeat("k", 600)+`":"?"}`)
	if diff := cmp.Diff([]string{"spec", "spec.a", "spec.d", "spec.l[name=x].y", `spec.m["a.b"]`}, overrides.Places(spec)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheSizeOfANoteIsLimited(t *testing.T) {
	base, spec := map[string]any{"small": "x"}, map[string]any{"small": "y"}
	base["script"], spec["script"] = strings.Repeat("long", overrides.MaxNote/4), "short"
	if got, want := overrides.Compare(base, spec, nil).String(), `{"spec.script":{"hidden":"TooLarge"},"spec.small":{"value":"x"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for i := range 2000 {
		base[fmt.Sprintf("field-%d", i)] = "x"
	}
	note := overrides.Compare(base, spec, nil)
	if got, want := note.String(), `{"spec":{"hidden":"TooLarge"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := note.Base(spec, machine.Base{}), (overrides.Unknown{Reason: overrides.TooLarge}); got != want {
		t.Errorf("the base is %v", got)
	}
	long := strings.Repeat("k", 600)
	if got, want := overrides.Compare(map[string]any{long: "x"}, spec, nil).String(), `{"spec":{"hidden":"TooLarge"}}`; got != want {
		t.Errorf("a long key: got %s, want %s", got, want)
	}
}

func TestANoteInAnotherForm(t *testing.T) {
	spec := parsed(t, `{"a":{"b":1},"l":[{"name":"x"}]}`).(map[string]any)
	for _, tc := range []struct{ text, want string }{
		{`no JSON`, `{"a":{"b":1},"l":[{"name":"x"}]}`},
		{`{"metadata.labels.x":{"value":1}}`, `{"a":{"b":1},"l":[{"name":"x"}]}`},
		{`{"spec.a[0]":{"value":1},"status":{}}`, `{"a":{"b":1},"l":[{"name":"x"}]}`},
		{`{"spec.a.b.c":{"value":1}}`, `{"a":{"b":{"c":1}},"l":[{"name":"x"}]}`},
		{`{"spec.l.b":{"value":1},"spec.l[name=y]":{}}`, `{"a":{"b":1},"l":{"b":1}}`},
		{`{"spec.n[name=y].z":{"value":1}}`, `{"a":{"b":1},"l":[{"name":"x"}],"n":[{"z":1}]}`},
	} {
		if diff := cmp.Diff(parsed(t, tc.want), overrides.ParseNote(tc.text).Base(spec, machine.Base{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.text, diff)
		}
	}
}

// TestLongLists covers what a VirtualMachine of the maximum size costs.
func TestLongLists(t *testing.T) {
	list := make([]any, 80_000)
	for i := range list {
		list[i] = map[string]any{"name": fmt.Sprint(i)}
	}
	base, spec := map[string]any{"l": list}, map[string]any{"l": append(slices.Clone(list[:len(list)-1]), map[string]any{"name": "new"})}
	note := overrides.Compare(base, spec, nil)
	if got, want := note.String(), `{"spec.l[name=79999]":{"value":{"name":"79999"}},"spec.l[name=new]":{}}`; got != want {
		t.Fatalf("got %.200s, want %s", got, want)
	}
	if diff := cmp.Diff(base, note.Base(spec, machine.Base{})); diff != "" {
		t.Errorf("the base (-want +got):\n%.500s", diff)
	}
	revert := overrides.Reverter{Tracked: true}
	if got := revert.RevertMap(spec, map[string]any{"l": list[:1000]}, map[string]any{"l": list[500:]}, base); len(got["l"].([]any)) != len(list) {
		t.Errorf("%d items are left", len(got["l"].([]any)))
	}
	if got, _ := revert.Restore(spec, base, nil, nil, base).(map[string]any); len(got["l"].([]any)) != len(list) {
		t.Errorf("%d items are left", len(got["l"].([]any)))
	}
}

// TestRandomOverridesAreUndone changes random trees, and compares the base that is found with the one that they had.
func TestRandomOverridesAreUndone(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		base, _ := tree(random, 3).(map[string]any)
		spec, _ := mutated(random, base).(map[string]any)
		note := overrides.Compare(base, spec, nil)
		found, _ := overrides.ParseNote(note.String()).Base(spec, machine.Base{}).(map[string]any)
		// Items that were removed come back at the end of their list, so bases are compared by what differs.
		if left := overrides.Compare(base, found, nil); len(left) > 0 {
			t.Fatalf("seed %d: the note %s of %v and %v is undone to %v", seed, note, base, spec, found)
		}
		if again := overrides.Compare(found, spec, nil).String(); again != note.String() {
			t.Fatalf("seed %d: the note is %s, and then %s", seed, note, again)
		}
	}
}

func tree(random *rand.Rand, depth int) any {
	switch kind := random.IntN(5); {
	case depth == 3 || depth > 0 && kind < 2:
		made := map[string]any{}
		for range random.IntN(4) + 1 {
			made[string(rune('a'+random.IntN(4)))] = tree(random, depth-1)
		}
		return made
	case depth > 0 && kind == 2:
		list := []any{}
		for i := range random.IntN(3) + 1 {
			list = append(list, map[string]any{"name": fmt.Sprintf("i%d", i), "x": tree(random, depth-1)})
		}
		return list
	case kind == 3:
		return []any{"x"}
	default:
		return fmt.Sprint(random.IntN(3))
	}
}

func mutated(random *rand.Rand, value any) any {
	switch value := value.(type) {
	case map[string]any:
		changed := map[string]any{}
		for key, below := range value {
			switch random.IntN(6) {
			case 0:
			case 1:
				changed[key] = tree(random, 2)
			default:
				changed[key] = mutated(random, below)
			}
		}
		if random.IntN(3) == 0 {
			changed["new"] = tree(random, 1)
		}
		return changed
	case []any:
		changed := []any{}
		for _, item := range value {
			if random.IntN(4) > 0 {
				if m, is := item.(map[string]any); is {
					item = map[string]any{"name": m["name"], "x": mutated(random, m["x"])}
				}
				changed = append(changed, item)
			}
		}
		if random.IntN(3) == 0 {
			changed = append(changed, map[string]any{"name": "added"})
		}
		return changed
	default:
		return value
	}
}
