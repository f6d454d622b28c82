package objects

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadingTheObjectsOfANewVM(t *testing.T) {
	const pending, record = "objects.template.kubevirt.io/pending", "template.kubevirt.io/rendered"
	of := func(name string, annotations map[string]any) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": name, "annotations": annotations}}
	}
	sealed := map[string]any{pending: seal(t), record: box.Record}
	other := maps.Clone(sealed)
	other[record] = "{}"
	list := `[{"kind": "Secret"}]`
	broken, err := boxKeys.encrypt(box, []byte(`{"sealed": "2026-06-01T12:00:00Z", "objects": [{"manifest": `+list+`}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name      string
		vm        map[string]any
		namespace string
		after     time.Duration
		reader    bool
		want      Rendered
		wantErr   string
	}{
		{name: "in their order", vm: of("web-1", sealed), reader: true, want: Rendered{Sensitive: []string{"open-sesame"}, Objects: []map[string]any{
			{"kind": "Secret", "metadata": map[string]any{"name": "web-1-db"}, "stringData": map[string]any{"password": "open-sesame"}},
			{"kind": "NetworkPolicy", "metadata": map[string]any{"name": "web-1"}},
		}}},
		{name: "of a VM without objects", vm: of("web-1", map[string]any{record: box.Record}), reader: true},
		{name: "of a VM without objects where none are created", vm: of("web-1", nil)},
		{name: "where none are created", vm: of("web-1", sealed), wantErr: "reading the objects of the template: they are not created in this cluster"},
		{name: "of another VM", vm: of("web-2", sealed), reader: true, wantErr: "reading the objects of the template: the annotation was written for another VirtualMachine, or changed"},
		{name: "of another namespace", vm: of("web-1", sealed), namespace: "team-b", reader: true, wantErr: "was written for another VirtualMachine"},
		{name: "of another record", vm: of("web-1", other), reader: true, wantErr: "was written for another VirtualMachine"},
		{name: "of a VM of this name that was deleted", vm: of("web-1", sealed), after: time.Hour, reader: true, wantErr: "the annotation was written for a VirtualMachine of the same name that was created 1h0m0s earlier or later"},
		{name: "that are none", vm: of("web-1", map[string]any{pending: broken, record: box.Record}), reader: true, wantErr: "reading the objects of the template: json"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var reader *Reader
			if tc.reader {
				reader = &Reader{Keys: func() Keys { return boxKeys }, Now: func() time.Time { return now.Add(tc.after) }}
			}
			if tc.namespace == "" {
				tc.namespace = "team-a"
			}
			got, err := reader.Read(tc.vm, tc.namespace)
			if text := fmtError(err); (text == "") != (tc.wantErr == "") || !strings.Contains(text, tc.wantErr) {
				t.Errorf("got %q, want %q", text, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func fmtError(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
