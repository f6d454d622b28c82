package chart

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/install"
)

// fillPolicyWebhooks writes the webhooks of the policies as the manager does, or cert-manager its caBundle.
func fillPolicyWebhooks(t *testing.T, plane *controlplane.Plane, bundle string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"webhooks": []any{map[string]any{
		"name": "create.virtualmachine.policies.stencil.kubevirt.io", "sideEffects": "None", "admissionReviewVersions": []string{"v1"},
		"failurePolicy": "Ignore",
		"clientConfig":  map[string]any{"url": "https://localhost:1/validate-policies", "caBundle": bundle},
		"rules": []any{map[string]any{
			"apiGroups": []string{"kubevirt.io"}, "apiVersions": []string{"v1"}, "operations": []string{"CREATE"}, "resources": []string{"virtualmachines"},
		}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	client := clientFor(t, plane.AdminConfig()).AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if _, err := client.Patch(t.Context(), "stencil-policies", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "stencil-policy-webhook"}); err != nil {
		t.Fatal(err)
	}
}

// policyWebhooks of the policies, as JSON.
func policyWebhooks(t *testing.T, plane *controlplane.Plane) string {
	t.Helper()
	return mustKubectl(t, plane, "", "get", "validatingwebhookconfiguration", "stencil-policies", "-o", "jsonpath={.webhooks}")
}

// An upgrade must not change the webhooks that the manager has written, or no policy would be enforced after it.
//
//suite:long
func TestUpgradesLeaveTheWebhooksOfPoliciesToTheManager(t *testing.T) {
	for name, tc := range map[string]struct {
		provider  string
		arguments []string
	}{
		"self-managed": {provider: "self-managed"},
		"cert-manager": {provider: "cert-manager"},
		"self-managed, merged on the client's side": {provider: "self-managed", arguments: []string{"--server-side=false"}},
	} {
		t.Run(name, func(t *testing.T) {
			plane := shared.Plane(t)
			if tc.provider == "cert-manager" {
				knowCertManager(t, plane)
			}
			arguments := append([]string{"--namespace", install.Namespace, "--set", "certificates.provider=" + tc.provider}, tc.arguments...)
			run(t, plane, append([]string{"install", "stencil", chartFolder(t), withoutAPIServer, "--create-namespace"}, arguments...)...)
			cleanUp(t, plane, install.Options{})
			if got := policyWebhooks(t, plane); got != "" {
				t.Errorf("installed with webhooks: %s", got)
			}
			fillPolicyWebhooks(t, plane, "c2Vjb25k")
			want := policyWebhooks(t, plane)
			run(t, plane, append([]string{"upgrade", "stencil", chartFolder(t), withoutAPIServer, "--set", "webhooks.timeoutSeconds=7"}, arguments...)...)
			if diff := cmp.Diff(want, policyWebhooks(t, plane)); diff != "" {
				t.Errorf("after an upgrade (-want +got):\n%s", diff)
			}
			run(t, plane, "rollback", "stencil", "1", "--namespace", install.Namespace)
			if diff := cmp.Diff(want, policyWebhooks(t, plane)); diff != "" {
				t.Errorf("after a rollback (-want +got):\n%s", diff)
			}
		})
	}
}
