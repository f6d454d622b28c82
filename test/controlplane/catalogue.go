package controlplane

import (
	"context"
	"fmt"

	"k8s.io/client-go/dynamic"
)

// InstallCatalogue installs the instance types and preferences of every KubeVirt (u1.medium, fedora, ubuntu, windows.11 …). The plane must have
// KubeVirt, or its CRDs at least.
func (p *Plane) InstallCatalogue(ctx context.Context) error {
	manifests, err := p.manifests(ctx, "kubevirt-manifests")
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(p.AdminConfig())
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	for _, kind := range []string{"VirtualMachineClusterInstancetype", "VirtualMachineClusterPreference"} {
		if err := create(ctx, client, manifests.kind(kind)...); err != nil {
			return err
		}
	}
	return nil
}
