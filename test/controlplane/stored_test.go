package controlplane

import (
	"strings"
	"testing"
)

func TestPlanesBeginWithPreparedDataAndWithAuthoritiesOfTheirOwn(t *testing.T) {
	for range 2 {
		plane := StartFor(t, Options{VirtualizationCRDs: true})
		if made := kubectl(t, plane, nil, vmManifest("first", haltedSpec), "create", "-n", "default", "-f", "-"); made.Code != 0 {
			t.Fatal(made.Stderr)
		}
		authority := kubectl(t, plane, nil, "", "get", "configmap", "extension-apiserver-authentication", "-n", "kube-system", "-o", `jsonpath={.data.client-ca-file}`)
		if strings.TrimSpace(authority.Stdout) != strings.TrimSpace(string(plane.clients.pem)) {
			t.Errorf("aggregated API servers trust %s, not the authority of this plane: %s", authority.Stdout, authority.Stderr)
		}
		if denied := kubectl(t, plane, nil, `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"bad"},"spec":{"running":"yes"}}`, "create", "-n", "default", "-f", "-"); denied.Code == 0 {
			t.Error("the schema of VirtualMachines is not enforced")
		}
	}
}

func TestAPlaneWithDefinitionsOnlyGetsKubeVirtLater(t *testing.T) {
	plane := StartFor(t, Options{VirtualizationCRDs: true})
	if err := plane.StartKubeVirt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := kubectl(t, plane, nil, "", "get", "clusterrole", "kubevirt-controller", "-o", "name"); found.Code != 0 {
		t.Error(found.Stderr)
	}
}
