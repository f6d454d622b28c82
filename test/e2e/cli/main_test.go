// Package cli_test runs stencilctl as users do, as a process with a kubeconfig, against a real API server.
package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/stencilctl"
)

var (
	shared = controlplane.Shared{Options: controlplane.Options{VirtualizationCRDs: true}, Prepare: prepare}
	// binary is stencilctl.
	binary string
)

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// prepare installs the kinds that policies select. No webhook evaluates what the tests store.
func prepare(ctx context.Context, plane *controlplane.Plane) (err error) {
	if binary, err = stencilctl.Binary(ctx); err != nil {
		return err
	}
	definitions, err := controlplane.ReadCRDs("../../../charts/stencil/files/crds")
	if err != nil {
		return err
	}
	return plane.InstallCRDs(ctx, definitions...)
}

// result is the exit code and the output of stencilctl.
type result struct {
	code             int
	output, problems string
}

// run runs stencilctl as a user.
func run(t *testing.T, as *controlplane.User, arguments ...string) result {
	t.Helper()
	ran, err := stencilctl.Command{Binary: binary, Kubeconfig: as.Kubeconfig, Arguments: arguments}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return result{code: ran.Code, output: ran.Output, problems: ran.Problems}
}

// apply stores objects as the administrator.
func apply(t *testing.T, manifest string) {
	t.Helper()
	harness.Must(t, shared.Plane(t), nil, manifest, "create", "-f", "-")
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	testfile.Write(t, path, strings.TrimLeft(content, "\n"))
	return path
}
