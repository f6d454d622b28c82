package chart

import (
	"slices"
	"testing"

	"github.com/vmstencil/stencil/test/install"
)

// The account as which the manager applies policies of sources exists only if they are enabled.
//
//suite:long
func TestTheAccountOfPolicySourcesWritesPoliciesOnly(t *testing.T) {
	policies := rightsTo(map[string]string{"stencil.kubevirt.io/virtualmachinepolicies": "create patch delete"})
	readable := rightsTo(map[string]string{"secrets registry": "get", "configmaps authorities": "get"})
	options := install.Options{Values: map[string]any{"policySources": map[string]any{"enabled": true, "readable": []any{
		map[string]any{"kind": "Secret", "name": "registry"}, map[string]any{"kind": "ConfigMap", "name": "authorities"},
	}}}}
	plane := installed(t, options)
	manager, err := options.ManagerUser(plane)
	if err != nil {
		t.Fatal(err)
	}
	accountMay(t, plane, manager, "stencil-policy-sources", map[string][]string{install.Namespace: slices.Sorted(slices.Values(append(readable, policies...))), "default": policies})
}
