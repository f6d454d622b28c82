// Package library reads the ready policies of the chart, each a file with one
// VirtualMachinePolicy: to be applied unchanged, to be enabled by values of the chart,
// or to be used as a starting point. docs/policies/library.md describes them.
package library

import (
	"fmt"
	"path"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/charts"
)

// Policies returns all policies of the library, sorted by name. The error names a file
// that is not a policy.
func Policies() ([]*v1alpha1.VirtualMachinePolicy, error) {
	entries, err := charts.Files.ReadDir(charts.Library)
	if err != nil {
		return nil, fmt.Errorf("listing the policies: %w", err)
	}
	policies := make([]*v1alpha1.VirtualMachinePolicy, 0, len(entries))
	for _, entry := range entries {
		content, err := charts.Files.ReadFile(path.Join(charts.Library, entry.Name()))
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
