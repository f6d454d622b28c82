package main

import (
	"bytes"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// TestParametersAreCompleted completes -p from what a user may set in the namespace, from a template that the user may read, and from a file.
func TestParametersAreCompleted(t *testing.T) {
	t.Chdir("testdata")
	const at = "GET /apis/subresources.template.kubevirt.io/v1beta1/namespaces/shop/availabletemplates/golden.web"
	available := map[string][]string{at: {`{"templateRef": {"namespace": "golden", "name": "web"}, "allowed": true, "variants": [
		{"parameters": [{"name": "NAME", "description": "Name of the\nmachine"}, {"name": "SIZE", "enum": ["small", "medium"]},
			{"name": "ZONE", "fixed": true}, {"name": "LOUD", "type": "bool"}]},
		{"parameters": [{"name": "SIZE", "enum": ["small", "large"]}, {"name": "PASSWORD", "sensitive": true, "enum": ["hunter2"]}]}]}`}}
	readable := map[string][]string{"GET " + templateAt: {"FILE templates/web.yaml"}}
	for _, tc := range []struct {
		name      string
		arguments []string
		answers   map[string][]string
		want      string
	}{
		{"names that may be set", []string{"create", "golden/web", "-n", "shop", "-p", ""}, available, "NAME=\tName of the machine|SIZE=|LOUD=|PASSWORD=|:38"},
		{"names that begin so", []string{"create", "golden/web", "-n", "shop", "-p", "S"}, available, "SIZE=|:38"},
		{"names that are not given yet", []string{"process", "golden/web", "-n", "shop", "-p", "SIZE=small", "--param", ""}, available, "NAME=\tName of the machine|LOUD=|PASSWORD=|:38"},
		{"values that an approval lists", []string{"create", "golden/web", "-n", "shop", "-p", "SIZE="}, available, "SIZE=small|SIZE=medium|SIZE=large|:36"},
		{"values that begin so", []string{"create", "golden/web", "-n", "shop", "-p", "SIZE=l"}, available, "SIZE=large|:36"},
		{"true and false", []string{"create", "golden/web", "-n", "shop", "-p", "LOUD="}, available, "LOUD=true|LOUD=false|:36"},
		{"no values of a sensitive one", []string{"create", "golden/web", "-n", "shop", "-p", "PASSWORD="}, available, ":36"},
		{"the namespace of the machine", []string{"create", "web", "-n", "golden", "--target-namespace", "shop", "-p", "SIZE=l"}, available, "SIZE=large|:36"},
		{"a template that may be read", []string{"process", "golden/web", "-n", "shop", "-p", "TIER="}, readable, "TIER=front|TIER=back|:36"},
		{"a template that may not", []string{"process", "golden/web", "-n", "shop", "-p", ""}, nil, ":38"},
		{"a file", []string{"process", "-f", "templates/web.yaml", "-p", "TIER=f"}, nil, "TIER=front|:36"},
		{"a file without -f", []string{"create", "templates/web.yaml", "-p", "TIER=f"}, nil, "TIER=front|:36"},
		{"no template", []string{"create", "-p", ""}, nil, ":38"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := httptest.NewServer(&fakeCluster{test: t, answers: tc.answers})
			defer server.Close()
			t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
			var out, problems bytes.Buffer
			line := append([]string{"stencilctl", "__complete", tc.arguments[0], "--server", server.URL}, tc.arguments[1:]...)
			code := run(t.Context(), line, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &problems})
			got := strings.Join(strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"), "|")
			if diff := cmp.Diff(tc.want, got); diff != "" || code != cli.ExitOK {
				t.Errorf("exit code %d, %s (-want +got):\n%s", code, problems.String(), diff)
			}
		})
	}
}
