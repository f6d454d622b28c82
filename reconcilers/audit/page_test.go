package audit

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestReadPage(t *testing.T) {
	const one = `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine",
		"metadata":{"name":"web-1","namespace":"team-a","uid":"u1","generation":3,"labels":{"a":"b"},"annotations":{"c":"d"},"managedFields":[{"manager":"m"}],
			"creationTimestamp":"2026-11-21T12:00:00Z","deletionTimestamp":"2026-11-21T13:00:00Z","finalizers":["f"],"ownerReferences":[{"name":"pool"}]},
		"spec":{"runStrategy":"Always","n":12345678901234567890},"status":{"ready":true}}`
	want := map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
		"metadata": map[string]any{
			"name": "web-1", "namespace": "team-a", "uid": "u1", "generation": json.Number("3"), "labels": map[string]any{"a": "b"}, "annotations": map[string]any{"c": "d"},
			"creationTimestamp": "2026-11-21T12:00:00Z", "deletionTimestamp": "2026-11-21T13:00:00Z",
			"finalizers": []any{"f"}, "ownerReferences": []any{map[string]any{"name": "pool"}},
		},
		"spec":   map[string]any{"runStrategy": "Always", "n": json.Number("12345678901234567890")},
		"status": map[string]any{"ready": true},
	}
	for _, tc := range []struct {
		name, body string
		want       []map[string]any
		wantNext   string
		wantError  string
	}{
		{
			name: "machines and the token of the next page, without what nobody judges",
			body: `{"apiVersion":"kubevirt.io/v1","items":[` + one + `,` + one + `],"kind":"VirtualMachineList","metadata":{"continue":"more","remainingItemCount":7}}`,
			want: []map[string]any{want, want}, wantNext: "more",
		},
		{
			name: "the fields may come in another order, and there may be unknown ones",
			body: `{"metadata":{"resourceVersion":"1"},"future":{"items":[1]},"items":[` + one + `]}`,
			want: []map[string]any{want},
		},
		{name: "an empty list", body: `{"items":[],"metadata":{}}`},
		{name: "no list at all is an empty one", body: `{"items":null,"metadata":{}}`},
		{
			name: "a machine with nothing in it",
			body: `{"items":[{"metadata":{"name":"n","namespace":"ns","generateName":"g-"}}]}`,
			want: []map[string]any{{"apiVersion": "", "kind": "", "metadata": map[string]any{"name": "n", "namespace": "ns", "uid": "", "generateName": "g-"}}},
		},
		{name: "a list that breaks off is an error", body: `{"items":[` + one + `,{"meta`, want: []map[string]any{want}, wantError: "unexpected EOF"},
		{name: "a list without its end is an error", body: `{"items":[` + one + `]`, want: []map[string]any{want}, wantError: "EOF"},
		{name: "items that are no list are an error", body: `{"items":{}}`, wantError: "items are no list"},
		{name: "something that is no object is an error", body: `[]`, wantError: "expected {, found ["},
		{name: "a machine that is none is an error", body: `{"items":[{"metadata":7}]}`, wantError: "cannot unmarshal"},
		{name: "nothing is an error", body: ``, wantError: "EOF"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []map[string]any
			next, err := readPage(iotest.OneByteReader(strings.NewReader(tc.body)), func(object map[string]any) { got = append(got, object) })
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("error: got %v, want %q", err, tc.wantError)
				}
			} else if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("machines (-want +got):\n%s", diff)
			}
			if next != tc.wantNext {
				t.Errorf("next: got %q, want %q", next, tc.wantNext)
			}
		})
	}
}
