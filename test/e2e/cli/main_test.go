// Package cli_test runs stencilctl as people do, as a process with a kubeconfig, against a real API server.
package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
)

var (
	shared = controlplane.Shared{Prepare: prepare}
	// binary is stencilctl, built once.
	binary string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "stencilctl-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	binary = filepath.Join(folder, "stencilctl")
	return shared.Run(m)
}

// prepare installs the kinds that policies are about. Nobody else's webhook judges what the tests store.
func prepare(ctx context.Context, plane *controlplane.Plane) error {
	if err := build(ctx); err != nil {
		return err
	}
	if err := plane.InstallVirtualizationCRDs(ctx); err != nil {
		return err
	}
	definitions, err := controlplane.ReadCRDs("../../../charts/stencil/files/crds")
	if err != nil {
		return err
	}
	return plane.InstallCRDs(ctx, definitions...)
}

func build(ctx context.Context) error {
	command := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/stencilctl")
	command.Dir = "../../.."
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building stencilctl: %w\n%s", err, output)
	}
	return nil
}

// result is how stencilctl ended.
type result struct {
	code             int
	output, problems string
}

// stencilctl runs the command as a user.
func stencilctl(t *testing.T, as *controlplane.User, arguments ...string) result {
	t.Helper()
	command := exec.CommandContext(t.Context(), binary, arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+as.Kubeconfig)
	var output, problems bytes.Buffer
	command.Stdout, command.Stderr = &output, &problems
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{code: command.ProcessState.ExitCode(), output: output.String(), problems: problems.String()}
}

// apply stores objects as the administrator.
func apply(t *testing.T, manifest string) {
	t.Helper()
	result, err := shared.Plane(t).Kubectl(t.Context(), nil, manifest, "create", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	if result.Code != 0 {
		t.Fatalf("kubectl create: %s", result.Stderr)
	}
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.TrimLeft(content, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
