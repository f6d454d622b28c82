package publication

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTargets(t *testing.T) {
	cases := map[string]struct {
		names     []string
		want      []Target
		wantError string
	}{
		"no names are no targets": {},
		"a kind and a name are one target": {
			names: []string{"mutating/a-stencil-render", "validating/stencil-validate"},
			want:  []Target{{Mutating, "a-stencil-render"}, {Validating, "stencil-validate"}},
		},
		"an APIService is a target too": {
			names: []string{"apiservice/v1beta1.subresources.template.kubevirt.io"},
			want:  []Target{{APIService, "v1beta1.subresources.template.kubevirt.io"}},
		},
		"a name alone stands for both kinds": {
			names: []string{"stencil"},
			want:  []Target{{Mutating, "stencil"}, {Validating, "stencil"}},
		},
		"what is named twice is watched once": {
			names: []string{"validating/stencil", "stencil", "stencil"},
			want:  []Target{{Validating, "stencil"}, {Mutating, "stencil"}},
		},
		"an unknown kind is refused": {
			names:     []string{"converting/stencil"},
			wantError: `webhook configuration "converting/stencil": before the slash may stand mutating, validating or apiservice`,
		},
		"what cannot be a name is refused": {
			names: []string{"mutating/Stencil"},
			wantError: `webhook configuration "mutating/Stencil": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, ` +
				`'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is ` +
				`'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseTargets(tc.names)
			message := ""
			if err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff(tc.wantError, message); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
		})
	}
}
