// Package published_test checks what the functional tests of the published template API, kubevirt/virt-template, check where they need no running
// guest, in this project's words: each case names the behavior that a client or a script of that project relies on. It runs with KubeVirt's own
// admission, and with requests.strictSource off, because the published rights for captures are fewer.
package published_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/platform"
)

var stage *platform.Platform

func TestMain(m *testing.M) {
	harness.Main(m, func(ctx context.Context) (func() error, error) {
		var err error
		stage, err = platform.Start(ctx, platform.Options{
			KubeVirt: true, APIServer: true, Log: os.Stderr, Values: map[string]any{"requests": map[string]any{"strictSource": false}},
		})
		if err == nil {
			started = map[string]string{"stencil-manager": stage.Manager.Logs(), "stencil-apiserver": stage.APIServer.Logs()}
		}
		return func() error {
			if stage == nil {
				return nil
			}
			return stage.Stop()
		}, err
	})
}

func kubectl(t *testing.T, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, stage.Plane, nil, stdin, arguments...)
}

func must(t *testing.T, stdin string, arguments ...string) string {
	t.Helper()
	return harness.Must(t, stage.Plane, nil, stdin, arguments...).Stdout
}

// get sends a GET as the administrator, through the aggregator.
func get(t *testing.T, path string) (code int, header http.Header) {
	t.Helper()
	config := stage.Plane.AdminConfig()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header
}

// call posts ProcessOptions to a template, by kubectl.
func call(t *testing.T, version, namespace, template, verb, options string) controlplane.Result {
	t.Helper()
	path := fmt.Sprintf("/apis/subresources.template.kubevirt.io/%s/namespaces/%s/virtualmachinetemplates/%s/%s", version, namespace, template, verb)
	return kubectl(t, options, "create", "--raw", path, "-f", "-")
}

// list returns the values of a header in lower case.
func list(header http.Header, name string) string {
	return strings.ToLower(strings.Join(header.Values(name), ", "))
}
