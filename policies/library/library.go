// Package library holds ready policies, each a file with one VirtualMachinePolicy:
// to be applied unchanged, to be enabled by values of the chart, or to be used as
// a starting point. docs/policies/library.md describes them.
package library

import (
	"embed"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// Files are the policies: NAME.yaml, where NAME is the name of the policy.
//
//go:embed *.yaml
var Files embed.FS

// Policies returns all policies of the library, sorted by name. The error names a file
// that is not a policy.
func Policies() ([]*v1alpha1.VirtualMachinePolicy, error) {
	entries, err := Files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("listing the policies: %w", err)
	}
	policies := make([]*v1alpha1.VirtualMachinePolicy, 0, len(entries))
	for _, entry := range entries {
		content, err := Files.ReadFile(entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", entry.Name(), err)
		}
		policy := &v1alpha1.VirtualMachinePolicy{}
		if err := yaml.UnmarshalStrict(content, policy); err != nil {
			return nil, fmt.Errorf("reading %s: %w", entry.Name(), err)
		}
		policies = append(policies, policy)
	}
	return policies, nil
}
