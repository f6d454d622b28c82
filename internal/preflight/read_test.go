package preflight

import (
	"strings"
	"testing"
)

func TestGuardIsNamedAsByTheChart(t *testing.T) {
	for release, want := range map[string]string{
		"stencil":                            "stencil-definitions",
		"my-stencil-2":                       "my-stencil-2-definitions",
		"templates":                          "templates-stencil-definitions",
		strings.Repeat("a", 39):              strings.Repeat("a", 39) + "-definitions",
		strings.Repeat("a", 45):              strings.Repeat("a", 40) + "-definitions",
		"stencil-" + strings.Repeat("a", 45): "stencil-" + strings.Repeat("a", 32) + "-definitions",
	} {
		if got := Guard(release); got != want {
			t.Errorf("release %s: %s, want %s", release, got, want)
		}
	}
}

func TestWhatChangesVirtualMachines(t *testing.T) {
	configuration := func(group, resource, operation string) map[string]any {
		return map[string]any{"webhooks": []any{
			map[string]any{"rules": []any{map[string]any{"apiGroups": []any{"apps"}, "resources": []any{"deployments"}, "operations": []any{"*"}}}},
			map[string]any{"rules": []any{map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "operations": []any{operation}}}},
		}}
	}
	for _, tc := range []struct {
		group, resource, operation string
		want                       bool
	}{
		{"kubevirt.io", "virtualmachines", "CREATE", true},
		{"*", "*/*", "*", true},
		{"kubevirt.io", "*", "UPDATE", true},
		{"kubevirt.io", "virtualmachines", "DELETE", false},
		{"kubevirt.io", "virtualmachines/status", "UPDATE", false},
		{"kubevirt.io", "virtualmachineinstances", "CREATE", false},
		{"apps", "virtualmachines", "CREATE", false},
	} {
		if got := changesMachines(configuration(tc.group, tc.resource, tc.operation)); got != tc.want {
			t.Errorf("%+v: %t", tc, got)
		}
	}
}
