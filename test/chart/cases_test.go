package chart

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// renderCase holds values of the chart and the objects that it must render from them.
type renderCase struct {
	// release is "stencil" when empty.
	release string
	// values in YAML.
	values string
	// want maps "Kind/name {.json.path}" of an object to a value: nil for a path that must be absent, items for some elements of a list. The manifests that
	// the manager has are manager/Kind/name.
	want map[string]any
	// present and absent are objects, as Kind/name.
	present, absent []string
}

// items are expected somewhere in a list.
type items []string

func (c renderCase) run(t *testing.T) {
	rendered := render(t, cmp.Or(c.release, "stencil"), c.values)
	for key := range rendered {
		if prefix, is := strings.CutSuffix(key, "-protected-objects"); is && strings.HasPrefix(key, "ConfigMap/") {
			for name, object := range protected(t, rendered, strings.TrimPrefix(prefix, "ConfigMap/")) {
				rendered["manager/"+name] = object
			}
			break
		}
	}
	for place, want := range c.want {
		key, path, ok := strings.Cut(place, " ")
		if !ok {
			t.Fatalf("%q has no path", place)
		}
		got := plain(t, rendered.field(t, key, path))
		if some, ok := want.(items); ok {
			for _, item := range some {
				if list, _ := got.([]any); !slices.Contains(list, any(item)) {
					t.Errorf("%s lacks %s: %v", place, item, got)
				}
			}
			continue
		}
		if diff := gocmp.Diff(plain(t, want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", place, diff)
		}
	}
	for _, key := range c.present {
		rendered.get(t, key)
	}
	for _, key := range c.absent {
		if _, ok := rendered[key]; ok {
			t.Errorf("%s is rendered", key)
		}
	}
}

// runRenderCases renders every case, several at a time: each is a process of helm without a cluster.
func runRenderCases(t *testing.T, cases map[string]renderCase) {
	t.Run("rendered", func(t *testing.T) {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tc.run(t)
			})
		}
	})
}
