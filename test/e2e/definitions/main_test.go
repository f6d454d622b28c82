// Package definitions_test holds the chart's CustomResourceDefinitions against a
// real API server: that it takes them at all, which it does not when the rules in
// them may cost too much, and what it refuses because of them with no webhook
// running.
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
