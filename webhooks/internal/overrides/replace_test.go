package overrides_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/webhooks/internal/overrides"
)

func TestReplace(t *testing.T) {
	for name, tc := range map[string]struct{ value, old, now, pinned, want string }{
		"what changed":                      {value: `{"a":1,"b":2}`, old: `{"a":1,"b":2}`, now: `{"a":3,"b":2}`, want: `{"a":3,"b":2}`},
		"an override":                       {value: `{"a":9,"b":2}`, old: `{"a":1,"b":2}`, now: `{"a":3,"b":4}`, want: `{"a":9,"b":4}`},
		"a field that the template adds":    {value: `{"a":1}`, old: `{"a":1}`, now: `{"a":1,"b":{"c":1}}`, want: `{"a":1,"b":{"c":1}}`},
		"a field that it removes":           {value: `{"a":1,"b":{"c":1}}`, old: `{"a":1,"b":{"c":1}}`, now: `{"a":1}`, want: `{"a":1}`},
		"an override of one that it adds":   {value: `{"a":1,"b":5}`, old: `{"a":1}`, now: `{"a":1,"b":6}`, want: `{"a":1,"b":5}`},
		"an override in one that it drops":  {value: `{"b":{"c":2}}`, old: `{"b":{"c":1}}`, now: `{}`, want: `{"b":{"c":2}}`},
		"a removal by the owner":            {value: `{"a":1}`, old: `{"a":1,"b":2}`, now: `{"a":1,"b":3}`, want: `{"a":1}`},
		"something that has nothing to do":  {value: `{"a":1,"own":{"x":1}}`, old: `{"a":1}`, now: `{"a":2}`, want: `{"a":2,"own":{"x":1}}`},
		"an item":                           {value: `{"l":[{"name":"x","v":1},{"name":"own"}]}`, old: `{"l":[{"name":"x","v":1}]}`, now: `{"l":[{"name":"x","v":2}]}`, want: `{"l":[{"name":"x","v":2},{"name":"own"}]}`},
		"an item that the template adds":    {value: `{"l":[{"name":"own"},{"name":"x"}]}`, old: `{"l":[{"name":"x"}]}`, now: `{"l":[{"name":"x"},{"name":"y"}]}`, want: `{"l":[{"name":"own"},{"name":"x"},{"name":"y"}]}`},
		"an item that it removes":           {value: `{"l":[{"name":"own"},{"name":"x"}]}`, old: `{"l":[{"name":"x"},{"name":"z"}]}`, now: `{"l":[{"name":"z"}]}`, want: `{"l":[{"name":"own"}]}`},
		"an override in an item it removes": {value: `{"l":[{"name":"x","v":5}]}`, old: `{"l":[{"name":"x"},{"name":"z"}]}`, now: `{"l":[{"name":"z"}]}`, want: `{"l":[{"name":"x","v":5}]}`},
		"a list without names":              {value: `{"l":["a","b"]}`, old: `{"l":["a","b"]}`, now: `{"l":["a","c","d"]}`, want: `{"l":["a","c","d"]}`},
		"one with an override":              {value: `{"l":["x","b"]}`, old: `{"l":["a","b"]}`, now: `{"l":["a","c"]}`, want: `{"l":["x","c"]}`},
		"one of another length":             {value: `{"l":["a","b","x"]}`, old: `{"l":["a","b"]}`, now: `{"l":["a","c"]}`, want: `{"l":["a","b","x"]}`},
		"another kind of value":             {value: `{"a":{"b":1}}`, old: `{"a":{"b":1}}`, now: `{"a":"x"}`, want: `{"a":"x"}`},
		"what the manifest has":             {value: `{"a":1,"b":1}`, old: `{"a":1,"b":1}`, now: `{"a":2,"b":2}`, pinned: `{"a":1}`, want: `{"a":1,"b":2}`},
		"an item of the manifest":           {value: `{"l":[{"name":"x","v":1,"w":1}]}`, old: `{"l":[{"name":"x","v":1,"w":1}]}`, now: `{"l":[{"name":"x","v":2,"w":2}]}`, pinned: `{"l":[{"name":"x","w":1}]}`, want: `{"l":[{"name":"x","v":2,"w":1}]}`},
		"a list of the manifest":            {value: `{"l":["a"]}`, old: `{"l":["a"]}`, now: `{"l":["b"]}`, pinned: `{"l":["a"]}`, want: `{"l":["a"]}`},
		"nothing changed":                   {value: `{"a":9}`, old: `{"a":1}`, now: `{"a":1}`, want: `{"a":9}`},
	} {
		t.Run(name, func(t *testing.T) {
			var pinned any
			if tc.pinned != "" {
				pinned = parsed(t, tc.pinned)
			}
			value, old, now := parsed(t, tc.value), parsed(t, tc.old), parsed(t, tc.now)
			got := overrides.Replace(value, old, now, pinned)
			if diff := cmp.Diff(parsed(t, tc.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(parsed(t, tc.value), value); diff != "" {
				t.Errorf("its argument changed:\n%s", diff)
			}
		})
	}
	if got := overrides.Replace(overrides.Unknown{Reason: overrides.Secret}, "a", "b", nil); got != any(overrides.Unknown{Reason: overrides.Secret}) {
		t.Errorf("something unknown became %v", got)
	}
}
