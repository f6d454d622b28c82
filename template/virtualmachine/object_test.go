package virtualmachine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

func TestMapsInsideObjects(t *testing.T) {
	object := map[string]any{"a": map[string]any{"b": map[string]any{"c": "d"}}, "list": []any{map[string]any{"n": 1}, "no map", nil, map[string]any{"n": 2}}}
	for _, tc := range []struct {
		path []string
		want map[string]any
	}{
		{nil, object}, {[]string{"a", "b"}, map[string]any{"c": "d"}}, {[]string{"a", "x", "b"}, nil}, {[]string{"a", "b", "c"}, nil}, {[]string{"list"}, nil},
	} {
		if diff := cmp.Diff(tc.want, machine.MapAt(object, tc.path...)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.path, diff)
		}
	}
	if diff := cmp.Diff([]map[string]any{{"n": 1}, {"n": 2}}, machine.MapsAt(object, "list")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if found := machine.MapsAt(object, "a"); found != nil {
		t.Errorf("what is no list has %v", found)
	}
}
