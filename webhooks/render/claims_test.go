package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/mutation"
)

func TestDisclaim(t *testing.T) {
	const changed = "metadata annotations secret, spec list"
	places := []mutation.Pointer{{"metadata", "annotations", "secret"}, {"spec", "list"}}
	for _, tc := range []struct {
		name, entries, want string
		wantGone            bool
	}{
		{
			name:    "claims on what we changed go, others stay",
			entries: `[{"manager":"kubectl-create","operation":"Update","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:secret":{},"f:kept":{}}},"f:spec":{"f:list":{},"f:field":{}}}}]`,
			want:    `[{"manager":"kubectl-create","operation":"Update","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:kept":{}}},"f:spec":{"f:field":{}}}}]`, wantGone: true,
		},
		{
			name:    "parents that claim nothing more go with them, and so does an entry",
			entries: `[{"manager":"kubectl-create","operation":"Update","fieldsV1":{"f:spec":{"f:list":{}}}}]`,
			want:    `[]`, wantGone: true,
		},
		{
			name:    "claims of an applier stay",
			entries: `[{"manager":"argocd","operation":"Apply","fieldsV1":{"f:spec":{"f:list":{}}}}]`,
			want:    `[{"manager":"argocd","operation":"Apply","fieldsV1":{"f:spec":{"f:list":{}}}}]`,
		},
		{
			name:    "nothing claimed, nothing gone",
			entries: `[{"manager":"kubectl-create","operation":"Update","fieldsV1":{"f:spec":{"f:field":{}}}}]`,
			want:    `[{"manager":"kubectl-create","operation":"Update","fieldsV1":{"f:spec":{"f:field":{}}}}]`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := parse(t, tc.entries)
			got, disclaimed := disclaim(before, places)
			if diff := cmp.Diff(parse(t, tc.want), got); diff != "" || disclaimed != tc.wantGone {
				t.Errorf("without %s: gone %v, want %v (-want +got):\n%s", changed, disclaimed, tc.wantGone, diff)
			}
			if diff := cmp.Diff(parse(t, tc.entries), before); diff != "" {
				t.Errorf("the object was modified:\n%s", diff)
			}
		})
	}
}

func TestWithoutDropped(t *testing.T) {
	for _, tc := range []struct{ name, stored, before, now, want string }{
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
	} {
		t.Run(tc.name, func(t *testing.T) {
			object := func(raw string) map[string]any { return parse(t, raw).(map[string]any) }
			stored := object(tc.stored)
			got := withoutDropped(stored, object(tc.before), object(tc.now))
			if diff := cmp.Diff(object(tc.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(object(tc.stored), stored); diff != "" {
				t.Errorf("the stored object was modified:\n%s", diff)
			}
		})
	}
}
