package install

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/product"
)

// OperatorBundle writes the manifest that virt-operator embeds, and the permissions that virt-operator needs for it, to a folder, as
// `make build-installer-virt-operator` does, for KubeVirt in a namespace.
func OperatorBundle(ctx context.Context, folder, namespace string) (bundle, permissions string, err error) {
	tools, err := controlplane.Tools(ctx, "helm")
	if err != nil {
		return "", "", err
	}
	root, err := product.Root()
	if err != nil {
		return "", "", err
	}
	command := exec.CommandContext(ctx, "go", "run", "./hack/operatorbundle", "-helm", tools["helm"], "-namespace", namespace, "-output", folder)
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("writing the bundle for virt-operator: %w\n%s", err, output)
	}
	return filepath.Join(folder, "install-virt-operator.yaml"), filepath.Join(folder, "virt-operator-permissions.yaml"), nil
}
