package overrides_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/webhooks/internal/overrides"
)

// parsed returns a JSON value; "?" is an unknown one.
func parsed(t *testing.T, raw string) any {
	t.Helper()
	if raw == "" {
		return nil
	}
	return withUnknowns(fixture.VM(t, `{"v":`+raw+`}`)["v"])
}

func withUnknowns(value any) any {
	switch value := value.(type) {
	case string:
		if value == "?" {
			return overrides.Unknown{Reason: overrides.Secret}
		}
	case map[string]any:
		for key := range value {
			value[key] = withUnknowns(value[key])
		}
	case []any:
		for i := range value {
			value[i] = withUnknowns(value[i])
		}
	}
	return value
}

func TestRevert(t *testing.T) {
	for _, tc := range []struct{ name, stored, before, now, base, want string }{
		{
			name:   "a field that is said no more goes, what was never said stays",
			stored: `{"mine":1,"theirs":2}`, before: `{"mine":1}`, now: `{}`, want: `{"theirs":2}`,
		},
		{
			name:   "a field that is still said stays",
			stored: `{"mine":1}`, before: `{"mine":1}`, now: `{"mine":2}`, want: `{"mine":1}`,
		},
		{
			name:   "it goes at any depth, and an empty parent with it",
			stored: `{"a":{"b":{"mine":1}},"c":{"mine":1,"theirs":2}}`, before: `{"a":{"b":{"mine":1}},"c":{"mine":1}}`, now: `{}`, want: `{"c":{"theirs":2}}`,
		},
		{
			name:   "an empty map goes, and one that is still said stays",
			stored: `{"a":{},"b":{}}`, before: `{"a":{},"b":{}}`, now: `{"b":{}}`, want: `{"b":{}}`,
		},
		{
			name:   "of a named list the items that were named go",
			stored: `{"l":[{"name":"theirs"},{"name":"mine"}]}`, before: `{"l":[{"name":"mine"}]}`, now: `{}`, want: `{"l":[{"name":"theirs"}]}`,
		},
		{
			name:   "a list without names goes as a whole",
			stored: `{"l":["a"]}`, before: `{"l":["a"]}`, now: `{}`, want: `{}`,
		},
		{
			name:   "a list that an applier claims stays, because nobody knows what was in it",
			stored: `{"l":[{"name":"theirs"},{"name":"mine"}]}`, before: `{"l":true}`, now: `{}`, want: `{"l":[{"name":"theirs"},{"name":"mine"}]}`,
		},
		{
			name:   "a map that an applier claims as a whole goes",
			stored: `{"nodeSelector":{"a":"b"}}`, before: `{"nodeSelector":true}`, now: `{}`, want: `{}`,
		},
		{
			name:   "what is not stored any more is no matter",
			stored: `{}`, before: `{"gone":1}`, now: `{}`, want: `{}`,
		},
		{
			name:   "the value of the base comes back",
			stored: `{"cpu":{"cores":2,"sockets":1}}`, before: `{"cpu":{"cores":2}}`, now: `{}`, base: `{"cpu":{"cores":4}}`, want: `{"cpu":{"cores":4,"sockets":1}}`,
		},
		{
			name:   "a field that the base has as well stays",
			stored: `{"cores":4}`, before: `{"cores":4}`, now: `{}`, base: `{"cores":4}`, want: `{"cores":4}`,
		},
		{
			name:   "an item of the base comes back, one of the manifest alone goes",
			stored: `{"l":[{"name":"a","x":2},{"name":"b"},{"name":"c"}]}`, before: `{"l":[{"name":"a","x":2},{"name":"b"}]}`, now: `{"l":[{"name":"d"}]}`,
			base: `{"l":[{"name":"a","x":1,"y":1}]}`, want: `{"l":[{"name":"a","x":1},{"name":"c"}]}`,
		},
		{
			name:   "a field of an item comes back",
			stored: `{"l":[{"name":"a","x":2,"y":2}]}`, before: `{"l":[{"name":"a","x":2,"y":2}]}`, now: `{"l":[{"name":"a","y":2}]}`,
			base: `{"l":[{"name":"a","x":1,"y":1}]}`, want: `{"l":[{"name":"a","x":1,"y":2}]}`,
		},
		{
			name:   "a list that an applier claims is that of the base",
			stored: `{"l":[{"name":"theirs"},{"name":"mine"}]}`, before: `{"l":true}`, now: `{"l":true}`, base: `{"l":[{"name":"theirs"}]}`, want: `{"l":[{"name":"theirs"}]}`,
		},
		{
			name:   "a list of the applier alone goes",
			stored: `{"l":[{"name":"mine"}]}`, before: `{"l":true}`, now: `{}`, base: `{}`, want: `{}`,
		},
		{
			name:   "a list of which the base is unknown stays while the applier claims it",
			stored: `{"l":[{"name":"theirs"},{"name":"mine"}]}`, before: `{"l":true}`, now: `{"l":true}`, base: `{"l":"?"}`, want: `{"l":[{"name":"theirs"},{"name":"mine"}]}`,
		},
		{
			name:   "below something unknown all is",
			stored: `{"a":{"b":1,"c":1},"d":1}`, before: `{"a":{"b":1},"d":1}`, now: `{}`, base: `{"a":"?"}`, want: `{"a":{"b":"?","c":1}}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			object := func(raw string) map[string]any { return parsed(t, raw).(map[string]any) }
			stored, base := object(tc.stored), parsed(t, tc.base)
			got := overrides.Reverter{Tracked: base != nil}.RevertMap(stored, object(tc.before), object(tc.now), base)
			if diff := cmp.Diff(object(tc.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]any{object(tc.stored), parsed(t, tc.base)}, []any{stored, base}); diff != "" {
				t.Errorf("the input was modified:\n%s", diff)
			}
		})
	}
}

func TestRestore(t *testing.T) {
	for _, tc := range []struct{ name, stored, requested, before, now, base, want string }{
		{name: "an override that is removed is that of the base again", stored: `{"cores":2}`, requested: `{}`, base: `{"cores":4}`, want: `{"cores":4}`},
		{name: "a field of the base can be removed", stored: `{"cores":4}`, requested: `{}`, base: `{"cores":4}`, want: `{}`},
		{name: "not by a manifest that has it no more", stored: `{"cores":4}`, requested: `{}`, before: `{"cores":4}`, now: `{}`, base: `{"cores":4}`, want: `{"cores":4}`},
		{name: "a field that the base lacks goes", stored: `{"a":{"b":1}}`, requested: `{}`, before: `{"a":{"b":1}}`, now: `{}`, base: `{}`, want: `{}`},
		{name: "a map with an override comes back as a whole", stored: `{"cpu":{"cores":2,"threads":1}}`, requested: `{}`, base: `{"cpu":{"cores":4,"threads":1}}`, want: `{"cpu":{"cores":4,"threads":1}}`},
		{
			name:   "a manifest that has nothing of a map any more removes what it had",
			stored: `{"domain":{"cpu":{"cores":2},"memory":1,"own":1}}`, requested: `{"hostname":"h"}`, before: `{"domain":{"cpu":{"cores":2}}}`, now: `{"hostname":"h"}`,
			base: `{"domain":{"cpu":{"cores":4},"memory":1}}`, want: `{"domain":{"cpu":{"cores":4},"memory":1,"own":1},"hostname":"h"}`,
		},
		{name: "a field of an item comes back", stored: `{"l":[{"name":"a","x":2}]}`, requested: `{"l":[{"name":"a"}]}`, base: `{"l":[{"name":"a","x":1}]}`, want: `{"l":[{"name":"a","x":1}]}`},
		{name: "an item that is removed stays removed", stored: `{"l":[{"name":"a","x":2},{"name":"b"}]}`, requested: `{"l":[{"name":"b"}]}`, base: `{"l":[{"name":"a","x":1}]}`, want: `{"l":[{"name":"b"}]}`},
		{name: "what the base had is unknown", stored: `{"a":{"b":2}}`, requested: `{"a":{}}`, base: `{"a":{"b":"?"}}`, want: `{"a":{"b":"?"}}`},
		{name: "an empty list that is removed from the manifest", stored: `{}`, requested: `{}`, before: `{"l":[]}`, now: `{}`, base: `{"l":["a"]}`, want: `{"l":["a"]}`},
		{name: "an empty list that stays in the manifest", stored: `{}`, requested: `{}`, before: `{"l":[]}`, now: `{"l":[]}`, base: `{"l":["a"]}`, want: `{}`},
		{name: "a change stays", stored: `{"cores":2}`, requested: `{"cores":3}`, base: `{"cores":4}`, want: `{"cores":3}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			input := []any{parsed(t, tc.stored), parsed(t, tc.requested), parsed(t, tc.before), parsed(t, tc.now), parsed(t, tc.base)}
			got := overrides.Reverter{Tracked: true}.Restore(input[0], input[1], input[2], input[3], input[4])
			if diff := cmp.Diff(parsed(t, tc.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]any{parsed(t, tc.stored), parsed(t, tc.requested), parsed(t, tc.before), parsed(t, tc.now), parsed(t, tc.base)}, input); diff != "" {
				t.Errorf("the input was modified:\n%s", diff)
			}
		})
	}
}
