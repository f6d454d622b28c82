// Package catalogue_test installs the chart golden-images beside Stencil, KubeVirt and CDI, and creates VirtualMachines from all of its templates as
// a user without permission beyond those that the chart gives.
package catalogue_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/platform"
)

const (
	// golden has the catalogue with passwords, for both architectures; keys has a part of it, with SSH keys and answer files.
	golden, keys = "golden", "keys"
	// free and governed are the namespaces of VirtualMachines; the approval of the catalogue is enforced in governed.
	free, governed = "free", "governed"
	// users is the group that may use the templates of golden and keys.
	users = "vm-owners"
)

var (
	stencil *platform.Platform
	// ada has the role edit in the namespaces of VirtualMachines and belongs to the group users. eve has the role only.
	ada, eve *controlplane.User
)

func TestMain(m *testing.M) { harness.Main(m, start) }

func start(ctx context.Context) (stop func() error, err error) {
	if stencil, err = platform.Start(ctx, platform.Options{KubeVirt: true, ControllerManager: true, CDI: true, Log: os.Stderr}); err != nil {
		return nil, err
	}
	return stencil.Stop, prepare(ctx)
}

func prepare(ctx context.Context) (err error) {
	if err := harness.Apply(ctx, stencil.Plane, gen.Manifest(gen.Namespace(free), gen.Namespace(governed)), "-"); err != nil {
		return err
	}
	// Nothing is imported: the images are in public registries.
	if err := installCatalogue(ctx, golden, map[string]any{
		"architectures": []string{"amd64", "arm64"},
		"goldenImages":  map[string]any{"suspended": true},
		"users":         map[string]any{"groups": []string{users}},
		"approval":      map[string]any{"enabled": true, "namespaces": []string{governed}},
	}); err != nil {
		return err
	}
	if err := installCatalogue(ctx, keys, map[string]any{
		"systems": []string{"fedora", "windows11"}, "login": "SSHKey",
		"goldenImages": map[string]any{"enabled": false},
		"windows":      map[string]any{"sysprep": "ConfigMap"},
		"users":        map[string]any{"groups": []string{users}},
	}); err != nil {
		return err
	}
	works := []gen.UserModifier{gen.Role(free, "edit"), gen.Role(governed, "edit")}
	if ada, err = gen.User(ctx, stencil.Plane, "ada", append(works, gen.Group(users))...); err != nil {
		return err
	}
	eve, err = gen.User(ctx, stencil.Plane, "eve", works...)
	return err
}

// installCatalogue installs the chart golden-images with helm, as a release with the name of its namespace.
func installCatalogue(ctx context.Context, namespace string, values map[string]any) error {
	chart, err := install.CatalogueFolder()
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "catalogue-*.yaml")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if _, err := file.Write(text); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	result, err := stencil.Plane.Helm(ctx, "install", namespace, chart, "--namespace", namespace, "--create-namespace", "--values", file.Name())
	if err == nil && result.Code != 0 {
		err = fmt.Errorf("helm install %s: %s", namespace, strings.TrimSpace(result.Stderr))
	}
	return err
}

func kubectl(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, stencil.Plane, as, stdin, arguments...)
}

func must(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Must(t, stencil.Plane, as, stdin, arguments...)
}

// jsonpath returns a part of an object, as the administrator.
func jsonpath(t *testing.T, namespace, object, path string) string {
	t.Helper()
	return must(t, nil, "", "get", object, "-n", namespace, "-o", "jsonpath={"+path+"}").Stdout
}
