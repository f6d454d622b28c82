// Package definitions_test tests the chart's CustomResourceDefinitions with a real API server: that it accepts them, which it does not when their
// rules may cost too much, and what it rejects because of them when no webhook runs.
package definitions_test

import (
	"context"
	"os"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
)

var shared = controlplane.Shared{
	Prepare: func(ctx context.Context, plane *controlplane.Plane) error {
		definitions, err := controlplane.ReadCRDs("../../../charts/stencil/files/crds")
		if err != nil {
			return err
		}
		return plane.InstallCRDs(ctx, definitions...)
	},
}

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// kubectl runs kubectl as the administrator.
func kubectl(t *testing.T, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, shared.Plane(t), nil, stdin, arguments...)
}

// must runs kubectl as the administrator and requires success.
func must(t *testing.T, stdin string, arguments ...string) {
	t.Helper()
	harness.Must(t, shared.Plane(t), nil, stdin, arguments...)
}
