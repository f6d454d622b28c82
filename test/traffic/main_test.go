package traffic_test

import (
	"os"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
)

// shared is a plane with the definitions of KubeVirt and without KubeVirt.
var shared = controlplane.Shared{Options: controlplane.Options{VirtualizationCRDs: true}}

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// apply stores objects as the administrator and deletes them when the test ends.
func apply(t *testing.T, plane *controlplane.Plane, manifest string) {
	t.Helper()
	harness.Must(t, plane, nil, manifest, "apply", "-f", "-")
	t.Cleanup(func() {
		harness.Must(t, plane, nil, manifest, "delete", "--ignore-not-found", "--wait=false", "-f", "-")
	})
}
