package controlplane

import (
	"context"
	_ "embed"
)

//go:embed virtimport_crd.yaml
var importDefinition []byte

// InstallImports installs the CRD VirtualMachineImport. Its controller does not run: tests act as its account.
func (p *Plane) InstallImports(ctx context.Context) error {
	definitions, err := decodeCRDs(importDefinition)
	if err != nil {
		return err
	}
	return p.InstallCRDs(ctx, definitions...)
}
