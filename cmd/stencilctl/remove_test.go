package main

import (
	"fmt"
	"maps"
	"testing"
)

// listed is a list of objects of a kind.
func listed(apiVersion, kind, items string) []string {
	return []string{fmt.Sprintf(`{"apiVersion": %q, "kind": "%sList", "metadata": {}, "items": [%s]}`, apiVersion, kind, items)}
}

func TestInstallRemove(t *testing.T) {
	t.Chdir("testdata")
	const request = `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateRequest",
		"metadata": {"namespace": "golden", "name": %q, "finalizers": [%s]}, "status": {"conditions": [{"type": "Progressing", "status": %q}]}}`
	const finalizer = `"template.kubevirt.io/SnapshotCleanup"`
	owned := func(owner string) []string {
		return []string{`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"labels": {"app.kubernetes.io/managed-by": "` + owner + `"}}}`}
	}
	const definition = definitionsAt + "virtualmachinetemplaterequests.template.kubevirt.io"
	answers := map[string][]string{
		definition: owned("Helm"),
		"GET /apis/template.kubevirt.io/v1beta1/virtualmachinetemplaterequests": listed("template.kubevirt.io/v1beta1", "VirtualMachineTemplateRequest",
			fmt.Sprintf(request, "ended", "", "False")+","+fmt.Sprintf(request, "running", finalizer, "True")+","+fmt.Sprintf(request, "uncleaned", finalizer, "False")),
		"GET /apis/stencil.kubevirt.io/v1alpha1/goldenimages": listed("stencil.kubevirt.io/v1alpha1", "GoldenImage",
			`{"apiVersion": "stencil.kubevirt.io/v1alpha1", "kind": "GoldenImage", "metadata": {"namespace": "golden", "name": "fedora", "finalizers": ["stencil.kubevirt.io/golden-image"]}}`),
		"GET /apis/kubevirt.io/v1/virtualmachines": listed("kubevirt.io/v1", "VirtualMachine",
			`{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"namespace": "shop", "name": "web", "annotations": {"objects.template.kubevirt.io/pending": "x"}}},
			{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"namespace": "shop", "name": "other"}}`),
	}
	for name, tc := range map[string]struct {
		flags   string
		answers map[string][]string
	}{
		"dry run":          {"--dry-run", answers},
		"dry run, as JSON": {"--dry-run -o json", answers},
		"of KubeVirt": {"--dry-run", func() map[string][]string {
			others := maps.Clone(answers)
			others[definition] = owned("virt-operator")
			return others
		}()},
		"nothing there": {"--dry-run --lease=a/b --hold=1h", nil},
		"no lease":      {"--lease=stencil", nil},
		"a short hold":  {"--hold=30s", nil},
		"forbidden":     {"", map[string][]string{"GET /apis/coordination.k8s.io/v1/namespaces/stencil-system/leases/stencil-manager": {respondWithError(403, "Forbidden", "leases is forbidden")}}},
		"a forbidden kind": {"--dry-run", map[string][]string{
			definition: owned("Helm"), "GET /apis/template.kubevirt.io/v1beta1/virtualmachinetemplaterequests": {respondWithError(403, "Forbidden", "virtualmachinetemplaterequests is forbidden")},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, "install remove, "+name, runInCluster(t, "install remove "+tc.flags, tc.answers))
		})
	}
}
