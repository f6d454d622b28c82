package virtualmachine

import (
	"strings"
	"testing"
)

func TestParseReference(t *testing.T) {
	for _, tc := range []struct {
		name, value string
		want        string
		wantErr     string
	}{
		{name: "a name is one in the namespace of the request", value: "fedora", want: "team-a/fedora"},
		{name: "a namespace and a name", value: "golden/fedora", want: "golden/fedora"},
		{name: "a name with dots", value: "golden/fedora.41", want: "golden/fedora.41"},
		{name: "nothing", value: "", wantErr: `metadata.annotations[template.kubevirt.io/template-ref]: Required value: name a VirtualMachineTemplate as NAME or NAMESPACE/NAME`},
		{name: "no name", value: "golden/", wantErr: "the name part is not a template name"},
		{name: "no namespace", value: "/fedora", wantErr: "the namespace part is not a namespace name"},
		{name: "three parts", value: "a/b/c", wantErr: "the name part is not a template name"},
		{name: "a parent folder", value: "../fedora", wantErr: "the namespace part is not a namespace name"},
		{name: "capital letters", value: "golden/Fedora", wantErr: "the name part is not a template name"},
		{name: "a blank before it", value: " golden/fedora", wantErr: "the namespace part is not a namespace name"},
		{name: "a line feed behind it", value: "golden/fedora\n", wantErr: "the name part is not a template name"},
		{name: "a full-width slash", value: "golden／fedora", wantErr: "the name part is not a template name"},
		{name: "a percent-encoded slash", value: "golden%2Ffedora", wantErr: "the name part is not a template name"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, errs := ParseReference(tc.value, "team-a")
			if tc.wantErr == "" {
				if len(errs) > 0 || got.String() != tc.want {
					t.Errorf("got %s, %v; want %s", got, errs, tc.want)
				}
				return
			}
			if !containsText(errs.ToAggregate(), tc.wantErr) {
				t.Errorf("got %v, want %q", errs, tc.wantErr)
			}
		})
	}
}

func containsText(err error, text string) bool {
	return err != nil && strings.Contains(err.Error(), text)
}
