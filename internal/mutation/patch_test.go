package mutation_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/mutation"
)

func TestPatch(t *testing.T) {
	var patch mutation.Patch
	if raw, err := patch.Marshal(); raw != nil || err != nil {
		t.Errorf("an empty patch is %s, %v", raw, err)
	}
	spec := mutation.Pointer{"spec"}
	object := map[string]any{"b": 1, "c": 2}
	patch.Set(spec.Child("a/b~c"), "x")
	patch.Remove(spec.Child("disks").Item(2))
	patch.Put(object, spec, "a", nil)
	patch.Drop(object, spec, "b")
	patch.Drop(object, spec, "missing")
	raw, err := patch.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"op":"add","path":"/spec/a~1b~0c","value":"x"},{"op":"remove","path":"/spec/disks/2","value":null},` +
		`{"op":"add","path":"/spec/a","value":null},{"op":"remove","path":"/spec/b","value":null}]`
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"a": nil, "c": 2}, object); diff != "" {
		t.Error(diff)
	}
	patch.Set(spec, math.Inf(1))
	if _, err := patch.Marshal(); err == nil {
		t.Error("infinity was encoded")
	}
}

func TestPointersShareNoMemory(t *testing.T) {
	parent := append(make(mutation.Pointer, 0, 8), "a")
	first, second := parent.Child("b"), parent.Child("c")
	if first.String() != "/a/b" || second.String() != "/a/c" {
		t.Errorf("%s, %s", first, second)
	}
}
