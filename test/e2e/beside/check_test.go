package beside_test

import (
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/stencilctl"
)

const definition = "virtualmachinetemplates.template.kubevirt.io"

// check runs stencilctl install check as a user who has the documented permissions only.
func check(t *testing.T) stencilctl.Result {
	t.Helper()
	user := harness.User(t, stage.Plane, "checker")
	ran, err := stencilctl.Command{Binary: binary, Kubeconfig: user.Kubeconfig, Line: "install check"}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ran
}

func admin(t *testing.T, stdin string, arguments ...string) string {
	t.Helper()
	return harness.Must(t, stage.Plane, nil, stdin, arguments...).Stdout
}

func TestInstallCheck(t *testing.T) {
	admin(t, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"install-check"},"rules":[
		{"apiGroups":["apiextensions.k8s.io"],"resources":["customresourcedefinitions"],"verbs":["get"]},
		{"apiGroups":["apiregistration.k8s.io"],"resources":["apiservices"],"verbs":["get"]},
		{"apiGroups":["admissionregistration.k8s.io"],"resources":["validatingadmissionpolicies"],"verbs":["get"]},
		{"apiGroups":["admissionregistration.k8s.io"],"resources":["mutatingwebhookconfigurations"],"verbs":["list"]},
		{"apiGroups":["kubevirt.io"],"resources":["kubevirts"],"verbs":["list"]},
		{"apiGroups":["cdi.kubevirt.io"],"resources":["cdis"],"verbs":["list"]},
		{"apiGroups":["template.kubevirt.io"],"resources":["virtualmachinetemplates","virtualmachinetemplaterequests"],"verbs":["list"]}]}`, "create", "-f", "-")
	admin(t, "", "create", "clusterrolebinding", "install-check", "--clusterrole=install-check", "--user=checker")

	// virt-operator writes its version.
	admin(t, "", "--namespace=kubevirt", "patch", "kubevirt", "kubevirt", "--subresource=status", "--type=merge", "--patch", `{"status": {"observedKubeVirtVersion": "v1.8.2"}}`)

	got := check(t)
	for _, want := range []string{
		"ok       API server: v1.", "warning  KubeVirt: kubevirt/kubevirt, v1.8.2, Deployed; its template component is off: its feature gate Template is off\n         before an upgrade to 1.9",
		"ok       CustomResourceDefinition " + definition + ": belongs to Helm release stencil-system/stencil\n",
	} {
		if got.Code != 0 || !strings.Contains(got.Output, want) {
			t.Errorf("exit code %d, no %q:\n%s%s", got.Code, want, got.Output, got.Problems)
		}
	}

	// The gate is on: virt-operator would create what exists.
	gates := admin(t, "", "get", "kubevirt", "kubevirt", "--namespace=kubevirt", "-o", "jsonpath={.spec.configuration.developerConfiguration}")
	if gates == "" {
		gates = "null"
	}
	configure := func(developer string) {
		t.Helper()
		admin(t, "", "patch", "kubevirt", "kubevirt", "--namespace=kubevirt", "--type=merge", "-p", `{"spec": {"configuration": {"developerConfiguration": `+developer+`}}}`)
	}
	configure(`{"featureGates": ["Template"]}`)
	t.Cleanup(func() { configure(gates) })
	got = check(t)
	if want := "problem  CustomResourceDefinition " + definition + ": belongs to Helm release stencil-system/stencil\n         KubeVirt's rollout stops at it with AlreadyExists: kubectl patch kubevirt kubevirt "; got.Code != 1 || !strings.Contains(got.Output, want) {
		t.Errorf("exit code %d, no %q:\n%s%s", got.Code, want, got.Output, got.Problems)
	}

	ran, err := stage.Plane.Helm(t.Context(), "template", "stencil", "../../../charts/stencil", "--namespace=stencil-system", "--dry-run=server",
		"--set-json=templateAPI=\"External\"", "--set-json=apiserver.enabled=false", "--set-json=objects.resources=[]")
	if err != nil {
		t.Fatal(err)
	}
	if want := "templateAPI is External, and CustomResourceDefinition " + definition + " does not belong to KubeVirt's own template component"; ran.Code == 0 || !strings.Contains(ran.Stderr, want) {
		t.Errorf("helm with templateAPI External: exit code %d:\n%s", ran.Code, ran.Stderr)
	}

	// The definition is virt-operator's.
	admin(t, "", "label", "crd", definition, "app.kubernetes.io/managed-by=virt-operator", "--overwrite")
	t.Cleanup(func() { admin(t, "", "label", "crd", definition, "app.kubernetes.io/managed-by=Helm", "--overwrite") })
	got = check(t)
	if want := "problem  CustomResourceDefinition " + definition + ": belongs to KubeVirt's virt-operator\n         Helm does not overwrite it. There are no templates"; got.Code != 1 || !strings.Contains(got.Output, want) {
		t.Errorf("exit code %d, no %q:\n%s%s", got.Code, want, got.Output, got.Problems)
	}

	// The gate is off again: virt-operator would delete it, and the policy denies that.
	configure(gates)
	got = check(t)
	if want := "problem  CustomResourceDefinition " + definition + ": belongs to KubeVirt's virt-operator\n         its component is off, and Stencil's policy keeps virt-operator from deleting it, so that KubeVirt does not settle: kubectl label crd " + definition; got.Code != 1 || !strings.Contains(got.Output, want) {
		t.Errorf("exit code %d, no %q:\n%s%s", got.Code, want, got.Output, got.Problems)
	}
	refused, err := stage.Plane.Helm(t.Context(), "template", "stencil", "../../../charts/stencil", "--namespace=stencil-system", "--dry-run=server")
	if err != nil {
		t.Fatal(err)
	}
	if want := "CustomResourceDefinition " + definition + " belongs to KubeVirt's own template component, which two installations cannot share: stencilctl install takeover --release "; refused.Code == 0 || !strings.Contains(refused.Stderr, want) {
		t.Errorf("helm: exit code %d:\n%s", refused.Code, refused.Stderr)
	}
}
