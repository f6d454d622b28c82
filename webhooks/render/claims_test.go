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
			name:    "so does a parent that is claimed without anything in it",
			entries: `[{"manager":"kubectl-create","operation":"Update","fieldsV1":{"f:spec":{".":{},"f:list":{}},"f:metadata":{"f:labels":{".":{}}}}}]`,
			want:    `[{"manager":"kubectl-create","operation":"Update","fieldsV1":{"f:metadata":{"f:labels":{".":{}}}}}]`, wantGone: true,
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

func TestAnApplierMayClaimMore(t *testing.T) {
	const (
		stored = `[{"manager":"d","operation":"Apply","time":"1","fieldsV1":{"f:spec":{}}},{"manager":"a","operation":"Apply","fieldsV1":{"f:spec":{"f:x":{}}}},{"manager":"b","operation":"Update","fieldsV1":{"f:spec":{"f:y":{}}}}]`
		now    = `[{"manager":"a","operation":"Apply","fieldsV1":{"f:spec":{"f:x":{},"f:y":{}}}},{"manager":"c","operation":"Apply","fieldsV1":{"f:spec":{}}},{"manager":"d","operation":"Apply","time":"2","fieldsV1":{"f:spec":{}}}]`
	)
	for _, tc := range []struct{ name, manager, want string }{
		{"the applier", "a", `[{"manager":"d","operation":"Apply","time":"1","fieldsV1":{"f:spec":{}}},{"manager":"a","operation":"Apply","fieldsV1":{"f:spec":{"f:x":{},"f:y":{}}}},{"manager":"b","operation":"Update","fieldsV1":{"f:spec":{"f:y":{}}}}]`},
		{"an applier that is new", "c", `[{"manager":"c","operation":"Apply","fieldsV1":{"f:spec":{}}},` + stored[1:]},
		{"an applier that claims the same", "d", stored},
		{"a manager that does not apply", "b", stored},
		{"no manager", "", stored},
	} {
		if diff := cmp.Diff(parse(t, tc.want), applied(parse(t, stored), parse(t, now), tc.manager)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}
