package rego_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// TestPoliciesReadTheFieldsOfTheInstalledKubeVirt adds a field to the definition of VirtualMachines, as an upgrade of KubeVirt does.
func TestPoliciesReadTheFieldsOfTheInstalledKubeVirt(t *testing.T) {
	const module = `package test

deny contains "trust is too low" if input.object.spec.template.spec.domain.trust.level < 3`
	const unknown = `The VirtualMachinePolicy "trust" is invalid: spec.rego: 3:76: unknown field: input.object.spec.template.spec.domain has no "trust", in: ` +
		`deny contains "trust is too low" if input.object.spec.template.spec.domain.trust.level < 3`
	if got := kubectl(t, policy("trust", "", module), "create", "-f", "-"); got.Code == 0 || strings.TrimSpace(got.Stderr) != unknown {
		t.Fatalf("before: exit code %d\n%s\nwant\n%s", got.Code, got.Stderr, unknown)
	}

	const definition = "virtualmachines.kubevirt.io"
	var crd apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal([]byte(must(t, "", "get", "crd", definition, "-o", "json")), &crd); err != nil {
		t.Fatal(err)
	}
	var add, remove []string
	for i := range crd.Spec.Versions {
		at := fmt.Sprintf("/spec/versions/%d/schema/openAPIV3Schema/properties/spec/properties/template/properties/spec/properties/domain/properties/trust", i)
		add = append(add, fmt.Sprintf(`{"op":"add","path":%q,"value":{"type":"object","properties":{"level":{"type":"integer"}}}}`, at))
		remove = append(remove, fmt.Sprintf(`{"op":"remove","path":%q}`, at))
	}
	patch := func(operations []string) {
		t.Helper()
		must(t, "", "patch", "crd", definition, "--type=json", "--patch=["+strings.Join(operations, ",")+"]")
	}
	patch(add)
	restored := false
	restore := func() {
		if !restored {
			restored = true
			patch(remove)
		}
	}
	t.Cleanup(restore)

	t.Cleanup(func() { must(t, "", "delete", "vmpol", "trust", "--ignore-not-found") })
	harness.Eventually(t, "the policy is accepted", func() error {
		if got := kubectl(t, policy("trust", "", module), "create", "-f", "-"); got.Code != 0 {
			return fmt.Errorf("%s", got.Stderr)
		}
		return nil
	})
	active(t, "trust")
	namespace := harness.Namespace(t, stencil.Plane, "trust")
	user := harness.User(t, stencil.Plane, "trusting", gen.Permits(namespace,
		// What edit permits; the role itself is empty without kube-controller-manager.
		rbacv1.PolicyRule{APIGroups: []string{"kubevirt.io"}, Resources: []string{"virtualmachines"}, Verbs: []string{"*"}}))
	vm := func(level int) string {
		return gen.Manifest(gen.VM("one", gen.InNamespace(namespace), gen.LeastSpec(), gen.Spec(fmt.Sprintf("template: {spec: {domain: {trust: {level: %d}}}}", level))))
	}
	denied := []string{"denied the request", "policy trust (medium): trust is too low"}
	awaitAnswer(t, user, vm(2), false, denied, "create", "--dry-run=server", "-f", "-")
	awaitAnswer(t, user, vm(2), false, denied, "create", "-f", "-")
	awaitAnswer(t, user, vm(3), true, nil, "create", "--dry-run=server", "-f", "-")

	// The field goes, as after a downgrade. The policy stays active, also in a manager that starts, and no other is accepted.
	restore()
	harness.Eventually(t, "a policy about the field is rejected again", func() error {
		if got := kubectl(t, policy("trust-2", "", module), "create", "--dry-run=server", "-f", "-"); got.Code == 0 || !strings.Contains(got.Stderr, `domain has no "trust"`) {
			return fmt.Errorf("exit code %d and %q", got.Code, got.Stderr)
		}
		return nil
	})
	restart(t, nil)
	harness.Eventually(t, "the policy is compiled", func() error {
		metrics, err := stencil.first.Metrics(t.Context())
		if err != nil || !strings.Contains(metrics, `stencil_policies{state="active"} 1`) || !strings.Contains(metrics, `stencil_policies{state="broken"} 0`) {
			return fmt.Errorf("the policy is not active: %w", err)
		}
		return nil
	})
	must(t, "", "patch", "vmpol", "trust", "--type=merge", `--patch={"spec":{"enforcement":"Warn"}}`)
	active(t, "trust")
}
