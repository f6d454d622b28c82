package render

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/internal/mutation"
)

// patched applies a patch to the JSON that it was created for.
func patched(t *testing.T, raw string, p *mutation.Patch) any {
	t.Helper()
	operations, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(fixture.Patched(t, []byte(raw), operations)))
}

func parse(t *testing.T, raw string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(raw), &value); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return value
}

func TestOverlay(t *testing.T) {
	for _, tc := range []struct {
		name, base, written, want string
		wantOperations            int
		wantLists                 []string
	}{
		{
			name:    "what the user did not write comes from the base",
			base:    `{"a":1,"b":{"c":[1]}}`,
			written: `{}`,
			want:    `{"a":1,"b":{"c":[1]}}`, wantOperations: 2,
		},
		{
			name:    "what the user wrote wins",
			base:    `{"a":1}`,
			written: `{"a":2,"z":3}`,
			want:    `{"a":2,"z":3}`,
		},
		{
			name:    "maps merge at every depth",
			base:    `{"a":{"b":{"c":1,"d":2}}}`,
			written: `{"a":{"b":{"c":9}}}`,
			want:    `{"a":{"b":{"c":9,"d":2}}}`, wantOperations: 1,
		},
		{
			name:    "null counts as not written",
			base:    `{"a":{"b":1}}`,
			written: `{"a":null}`,
			want:    `{"a":{"b":1}}`, wantOperations: 1,
		},
		{
			name:    "a scalar over a map replaces it",
			base:    `{"a":{"b":1}}`,
			written: `{"a":"x"}`,
			want:    `{"a":"x"}`,
		},
		{
			name:    "named lists merge by name, in the order of the base, new items last",
			base:    `{"l":[{"name":"one","x":1},{"name":"two","x":2}]}`,
			written: `{"l":[{"name":"three"},{"name":"two","y":3}]}`,
			want:    `{"l":[{"name":"one","x":1},{"name":"two","x":2,"y":3},{"name":"three"}]}`, wantOperations: 1,
			wantLists: []string{"/l"},
		},
		{
			name:    "named lists inside a named list merge too",
			base:    `{"l":[{"name":"one","m":[{"name":"in","v":1}]}]}`,
			written: `{"l":[{"name":"one","m":[{"name":"out"}]}]}`,
			want:    `{"l":[{"name":"one","m":[{"name":"in","v":1},{"name":"out"}]}]}`, wantOperations: 1,
			wantLists: []string{"/l"},
		},
		{
			name:    "a list with an item that has no name is replaced",
			base:    `{"l":[{"name":"one"},{"x":1}]}`,
			written: `{"l":[{"name":"two"}]}`,
			want:    `{"l":[{"name":"two"}]}`,
		},
		{
			name:    "a list that names one item twice is replaced",
			base:    `{"l":[{"name":"one"}]}`,
			written: `{"l":[{"name":"two"},{"name":"two"}]}`,
			want:    `{"l":[{"name":"two"},{"name":"two"}]}`,
		},
		{
			name:    "an empty list takes the items away",
			base:    `{"l":[{"name":"one"}]}`,
			written: `{"l":[]}`,
			want:    `{"l":[]}`,
		},
		{
			name:    "a list of strings is replaced",
			base:    `{"l":["a","b"]}`,
			written: `{"l":["c"]}`,
			want:    `{"l":["c"]}`,
		},
		{
			name:    "keys that need escaping in a pointer are found",
			base:    `{"a/b":{"c~d":1,"x":2}}`,
			written: `{"a/b":{"x":9}}`,
			want:    `{"a/b":{"c~d":1,"x":9}}`, wantOperations: 1,
		},
		{
			name:    "numbers keep every digit",
			base:    `{"n":123456789012345678901234567890}`,
			written: `{"m":9007199254740993}`,
			want:    `{"n":123456789012345678901234567890,"m":9007199254740993}`, wantOperations: 1,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			base, requested := fixture.VM(t, tc.base), fixture.VM(t, tc.written)
			merge := overlay{patch: &mutation.Patch{}}
			merge.apply(nil, base, requested)
			if diff := cmp.Diff(parse(t, tc.want), patched(t, tc.written, merge.patch)); diff != "" {
				t.Errorf("merged (-want +got):\n%s", diff)
			}
			if tc.wantOperations != len(merge.patch.Operations) {
				t.Errorf("%d operations, want %d: %v", len(merge.patch.Operations), tc.wantOperations, merge.patch.Operations)
			}
			for _, path := range tc.wantLists {
				if merge.lists[path] == "" {
					t.Errorf("list %s is not noted: %v", path, merge.lists)
				}
			}
			if len(merge.lists) != len(tc.wantLists) {
				t.Errorf("lists noted: %v, want %v", merge.lists, tc.wantLists)
			}
		})
	}
}
