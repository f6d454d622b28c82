package chart

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// An API server of Kubernetes 1.37 reads policies from files. No user can change them, and they need no release.
func TestPoliciesAsStaticManifests(t *testing.T) {
	chart, err := install.ChartFolder()
	if err != nil {
		t.Fatal(err)
	}
	printed, err := shared.Plane(t).Helm(t.Context(), "template", "stencil", chart, "--namespace=stencil-system",
		"--set=staticPolicies=true", "--show-only=templates/policies.yaml")
	if err != nil || printed.Code != 0 {
		t.Fatalf("%v: %s", err, printed.Stderr)
	}
	folder := t.TempDir()
	manifests := filepath.Join(folder, "policies")
	write := func(path, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		testfile.Write(t, path, content)
	}
	write(filepath.Join(manifests, "stencil.yaml"), printed.Stdout)
	configuration := filepath.Join(folder, "admission.yaml")
	write(configuration, fmt.Sprintf(`
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionPolicy
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ValidatingAdmissionPolicyConfiguration
    staticManifestsDir: %q
`, manifests))
	plane := controlplane.StartFor(t, controlplane.Options{VirtualizationCRDs: true, APIServerArgs: []string{"--admission-control-config-file=" + configuration}})
	const namespaces = `
apiVersion: v1
kind: Namespace
metadata:
  name: vault
  labels: {stencil.kubevirt.io/governed: "true"}
  annotations: {stencil.kubevirt.io/approvals: "1;vault;;golden/fedora"}
---
apiVersion: v1
kind: Namespace
metadata: {name: free, labels: {stencil.kubevirt.io/governed: "false"}}
`
	if err := harness.Apply(context.WithoutCancel(t.Context()), plane, namespaces, "-"); err != nil {
		t.Fatal(err)
	}
	create := func(namespace string) controlplane.Result {
		t.Helper()
		return harness.Kubectl(t, plane, nil, gen.Manifest(gen.VM("vm", gen.SmallSpec())), "create", "--namespace", namespace, "-f", "-")
	}
	const want = "ValidatingAdmissionPolicy 'stencil-governed-machines.static.k8s.io' with binding 'stencil-governed-machines.static.k8s.io' denied request: " +
		"VirtualMachines in a namespace that TemplateApproval vault governs are created from approved templates"
	if result := create("vault"); result.Code == 0 || !strings.Contains(result.Stderr, want) {
		t.Errorf("exit code %d, want a denial with %q: %s", result.Code, want, result.Stderr)
	}
	if result := create("free"); result.Code != 0 {
		t.Errorf("denied where nothing governs: %s", result.Stderr)
	}
	// They are not API objects, so they cannot be deleted.
	if listed := harness.Must(t, plane, nil, "", "get", "validatingadmissionpolicies,validatingadmissionpolicybindings", "-o", "name").Stdout; listed != "" {
		t.Errorf("the API has %s", listed)
	}
	if err := plane.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if result := create("vault"); result.Code == 0 || !strings.Contains(result.Stderr, want) {
		t.Errorf("after a restart exit code %d, want a denial with %q: %s", result.Code, want, result.Stderr)
	}
}
