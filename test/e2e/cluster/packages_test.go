package cluster_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/cluster/node"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// packaged exports a template with its disk as an OCI artifact and as an OVA, by movers in pods, imports each in another namespace as its editor, and
// compares bytes. A VM of each imported template boots.
func packaged(t *testing.T, namespace string) {
	if err := kube.InstallStencil(t.Context(), map[string]any{"transfers": map[string]any{"enabled": true, "allowedNetworks": node.Networks}}); err != nil {
		t.Fatal(err)
	}
	harness.Must(t, kube.Plane, ada, "", "delete", "virtualmachine", "web", "--namespace="+namespace)
	const artifact = node.Registry + "/templates/web:v1"
	export := func(name, spec, phase string) {
		makes(t, ada, namespace, fmt.Sprintf(`{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateExport", "metadata": {"name": %q}, "spec": {"templateRef": {"name": "web"}, %s}}`, name, spec))
		awaits(t, ada, namespace, "vmte", name, "jsonpath={.status.phase}="+phase)
		t.Logf("%s: %s", name, field(t, ada, namespace, "vmte", name, `{.status.conditions[?(@.type=="Sealed")]}`))
	}
	export("artifact", `"format": "OCI", "target": {"registry": {"image": "`+artifact+`", "insecure": true}}`, "Succeeded")
	export("appliance", `"format": "OVA"`, "Ready")

	secret := field(t, ada, namespace, "vmte", "appliance", "{.status.tokenSecretRef.name}")
	var download struct{ Data map[string][]byte }
	if err := json.Unmarshal([]byte(harness.Must(t, kube.Plane, ada, "", "get", "secret", secret, "--namespace="+namespace, "--output=json").Stdout), &download); err != nil {
		t.Fatal(err)
	}
	want := diskDigest(t, ada, namespace, "web")
	for name, source := range map[string]string{
		"artifact":  `"registry": {"image": "` + artifact + `", "insecure": true}`,
		"appliance": `"http": {"url": "` + field(t, ada, namespace, "vmte", "appliance", "{.status.url}") + `", "secretRef": {"name": "download"}, "certificatesRef": {"name": "download"}}`,
	} {
		elsewhere, err := kube.Plane.Namespace(t.Context(), "elsewhere")
		if err != nil {
			t.Fatal(err)
		}
		bob, err := gen.User(t.Context(), kube.Plane, "bob-of-"+name, gen.Role(elsewhere, "edit"))
		if err != nil {
			t.Fatal(err)
		}
		// ada gives him what the download needs.
		harness.Must(t, kube.Plane, bob, "", "create", "secret", "generic", "download", "--namespace="+elsewhere, "--from-literal=token="+string(download.Data["token"]))
		harness.Must(t, kube.Plane, bob, "", "create", "configmap", "download", "--namespace="+elsewhere, "--from-literal=ca.crt="+string(download.Data["ca.crt"]))
		makes(t, bob, elsewhere, fmt.Sprintf(`{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateImport", "metadata": {"name": %q}, "spec": {"source": {%s}}}`, name, source))
		awaits(t, bob, elsewhere, "vmti", name, "jsonpath={.status.phase}=Succeeded")
		if got := diskDigest(t, bob, elsewhere, name); got != want {
			t.Errorf("the disk of %s has the digest %s, want %s", name, got, want)
		}
		replaced(t, bob, elsewhere, name)
		reads(t, loggedIn(t, bob, elsewhere), "captured")
		harness.Must(t, kube.Plane, bob, "", "delete", "virtualmachine", "web", "--namespace="+elsewhere)
	}
}

// field returns a field of an object.
func field(t *testing.T, user *controlplane.User, namespace, kind, name, path string) string {
	t.Helper()
	return harness.Must(t, kube.Plane, user, "", "get", kind, name, "--namespace="+namespace, "--output=jsonpath="+path).Stdout
}

// diskDigest returns the digest of the disk of a template, which has one.
func diskDigest(t *testing.T, user *controlplane.User, namespace, template string) string {
	t.Helper()
	from := field(t, user, namespace, "vmt", template, "{.spec.virtualMachine.spec.dataVolumeTemplates[0].spec.source.pvc.name}")
	digest, _, _ := strings.Cut(inPod(t, namespace, "digest-"+template, from, "sha256sum /data/disk.img"), " ")
	return digest
}
