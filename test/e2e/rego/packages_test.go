package rego_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/product"
)

// TestPackagesAreImportedFromAndExportedToKnownHosts tests the policy of the documentation about imports and exports.
func TestPackagesAreImportedFromAndExportedToKnownHosts(t *testing.T) {
	root, err := product.Root()
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile(filepath.Join(root, "docs/examples/transfers/packages.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	namespace := harness.Namespace(t, stencil.Plane, "packages")
	// In its namespace only, because the policies of other tests must not be affected.
	selected := strings.Replace(string(example), "  match:\n", "  match:\n    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "+namespace+"}}\n", 1)
	must(t, selected, "apply", "-f", "-")
	t.Cleanup(func() { must(t, "", "delete", "vmpol", "packages") })
	active(t, "packages")

	everything := []string{"create"}
	ada := harness.User(t, stencil.Plane, namespace+"-ada", gen.Permits(namespace,
		rbacv1.PolicyRule{APIGroups: []string{"template.kubevirt.io"}, Resources: []string{"virtualmachinetemplateimports", "virtualmachinetemplateexports", "virtualmachinetemplates"}, Verbs: append(everything, "export", "get")},
		rbacv1.PolicyRule{APIGroups: []string{"cdi.kubevirt.io"}, Resources: []string{"datavolumes"}, Verbs: everything},
	))
	transfer := func(kind, spec string) string {
		return `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplate` + kind + `", "metadata": {"generateName": "web-", "namespace": "` + namespace + `"}, "spec": ` + spec + `}`
	}
	digest := "sha256:" + strings.Repeat("a", 64)
	const source, target = "packages are imported from downloads.example.com, registry.example.com only at spec.source", "templates leave the cluster for a known registry only at spec.target"
	for name, tc := range map[string]struct {
		manifest string
		denied   []string
	}{
		"from a known host":       {transfer("Import", `{"source": {"http": {"url": "https://downloads.example.com/a.ova"}}, "checksum": "`+digest+`"}`), nil},
		"from a known registry":   {transfer("Import", `{"source": {"registry": {"image": "registry.example.com/web:v1"}}, "checksum": "`+digest+`"}`), nil},
		"from another host":       {transfer("Import", `{"source": {"http": {"url": "https://downloads.example.com@other.example/a.ova"}}, "checksum": "`+digest+`"}`), []string{"spec.source.http.url"}},
		"from a bucket":           {transfer("Import", `{"source": {"s3": {"url": "https://downloads.example.com.other.example/b/a.ova", "secretRef": {"name": "a"}}}}`), []string{"User is not allowed to read Secret " + namespace + "/a"}},
		"an upload, no digest":    {transfer("Import", `{"source": {"upload": {"size": 1}}}`), []string{"policy packages (high): " + source, "the package has no digest at spec.checksum; fix: add that of the release notes"}},
		"to a known registry":     {transfer("Export", `{"templateRef": {"name": "web"}, "format": "OCI", "target": {"registry": {"image": "registry.example.com/web:v1"}}}`), nil},
		"to a download":           {transfer("Export", `{"templateRef": {"name": "web"}}`), []string{target}},
		"to a registry elsewhere": {transfer("Export", `{"templateRef": {"name": "web"}, "format": "OCI", "target": {"registry": {"image": "registry.example.com.other.example/web:v1"}}}`), []string{target}},
	} {
		t.Run(name, func(t *testing.T) {
			awaitAnswer(t, ada, tc.manifest, tc.denied == nil, tc.denied, "create", "--dry-run=server", "-f", "-")
		})
	}
	// The decision of a user about a stored import is an update, which the policy does not match.
	name := strings.TrimSpace(must(t, transfer("Import", `{"source": {"registry": {"image": "registry.example.com/web:v1"}}, "checksum": "`+digest+`"}`), "create", "-o", "name", "-f", "-"))
	must(t, "", "patch", name, "--namespace="+namespace, "--type=merge", `-p={"spec": {"eulaAccepted": true}}`)
	must(t, "", "delete", name, "--namespace="+namespace)
}
