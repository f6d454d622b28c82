package source_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/cmd/stencilctl/source"
)

func TestLocate(t *testing.T) {
	const manifest = `# a comment
kind: First
---
kind: Second
metadata:
  labels: &labels
    example.com/team: a
    a.b: dotted
    a: {b: nested}
items:
- name: x
  list:
    - one
    - two
again: *labels
`
	objects, err := (&source.Reader{In: strings.NewReader(manifest)}).Objects([]string{source.Stdin})
	if err != nil {
		t.Fatal(err)
	}
	locator := objects[1].Locator()
	for _, tc := range []struct {
		path, want string
		key        bool
	}{
		{path: "", want: "4:1"},
		{path: "kind", want: "4:7"},
		{path: "kind", key: true, want: "4:1"},
		{path: "metadata.labels[example.com/team]", want: "7:23"},
		{path: "metadata.labels.example.com/team", want: "7:23"},
		{path: "metadata.labels.a.b", want: "8:10"},
		{path: "metadata.labels.a", want: "9:5"},
		{path: "metadata.labels[nowhere].else", want: "6:3"},
		{path: "items[0].list[1]", want: "14:7"},
		{path: "items[0].name", want: "11:9"},
		{path: "items[7].name", want: "10:1"},
		{path: "items[x]", want: "10:1"},
		{path: "again.a", key: true, want: "9:5"},
	} {
		row, column := locator.Locate(tc.path, tc.key)
		if got := fmt.Sprintf("%d:%d", row, column); got != tc.want {
			t.Errorf("%q (key %v): got %s, want %s", tc.path, tc.key, got, tc.want)
		}
	}
}
