package rego_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// exception returns the manifest of a PolicyException that ends at a time.
func exception(name, policies, names string, expires time.Time, more string) string {
	return fmt.Sprintf(`{apiVersion: stencil.kubevirt.io/v1alpha1, kind: PolicyException, metadata: {name: %s},
spec: {policies: [%s], namespaces: [default], names: [%s], reason: "change 4711", expiresAt: "%s"%s}}`,
		name, policies, names, expires.UTC().Format(time.RFC3339), more)
}

// tries runs kubectl as a user with a manifest, until the result has these words and this success: permissions and caches follow a moment later.
func tries(t *testing.T, user *controlplane.User, manifest string, succeeds bool, words string, arguments ...string) controlplane.Result {
	t.Helper()
	var result controlplane.Result
	harness.Eventually(t, "kubectl "+strings.Join(arguments, " ")+" ends with "+words, func() error {
		result = harness.Kubectl(t, stencil.Plane, user, manifest, arguments...)
		if (result.Code == 0) != succeeds || !strings.Contains(result.Stdout+result.Stderr, words) {
			return fmt.Errorf("exit code %d: %s%s", result.Code, result.Stdout, result.Stderr)
		}
		return nil
	})
	return result
}

func TestExceptions(t *testing.T) {
	needReports(t)
	writer := rbacv1.PolicyRule{APIGroups: []string{"kubevirt.io"}, Resources: []string{"virtualmachines"}, Verbs: []string{"*"}}
	ada := harness.User(t, stencil.Plane, "ada", gen.Role("default", "stencil-admin"), gen.Permits("default", writer))
	bob := harness.User(t, stencil.Plane, "bob", gen.Role("default", "stencil-edit"), gen.Permits("default", writer))
	other := harness.Namespace(t, stencil.Plane, "elsewhere")
	harness.Grant(t, stencil.Plane, ada, other, writer)
	granter := harness.User(t, stencil.Plane, "granter", gen.Role("", "stencil-policy-exception-admin"))
	applied(t, "excepted", "match: {objectSelector: {matchLabels: {test: excepted}}}", denies("excepted"))
	active(t, "excepted")
	t.Cleanup(func() {
		must(t, "", "delete", "vm", "legacy-1", "legacy-2", "--ignore-not-found")
		must(t, "", "delete", "polex", "--all")
	})
	vm := func(name string, modifiers ...gen.Modifier) string { return vmManifest(name, "excepted", modifiers...) }
	const denied = "policy excepted (high): no excepted here"
	tries(t, ada, vm("legacy-1"), false, denied, "create", "-f", "-")

	// Neither an administrator of a namespace nor an annotation makes an exception.
	tomorrow := time.Now().Add(24 * time.Hour)
	legacy := exception("legacy", "excepted", "legacy-*", tomorrow, "")
	tries(t, ada, legacy, false, `cannot create resource "policyexceptions"`, "create", "-f", "-")
	tries(t, ada, vm("legacy-1", gen.Annotation("stencil.kubevirt.io/policy-exception", "legacy"), gen.Annotation("policy-exceptions", "excepted=legacy")), false, denied, "create", "-f", "-")

	tries(t, granter, legacy, true, "created", "create", "-f", "-")
	warning := "Warning: policy excepted is violated, which PolicyException legacy allows until " + tomorrow.UTC().Format(time.RFC3339)
	if got := tries(t, ada, vm("legacy-1"), true, warning, "create", "-f", "-").Stderr; strings.TrimSpace(got) != warning {
		t.Errorf("ada is told %q", got)
	}
	tries(t, ada, vm("new"), false, denied, "create", "-f", "-")
	tries(t, ada, vm("legacy-1", gen.InNamespace(other)), false, denied, "create", "-f", "-")
	excepted(t)

	// An exception for certain users applies to no others, and is not applied by the audit.
	tries(t, granter, exception("for-ada", "excepted", "own", tomorrow, ", subjects: [{kind: User, name: "+ada.Name+"}]"), true, "created", "create", "-f", "-")
	tries(t, ada, vm("own"), true, "PolicyException for-ada allows", "create", "--dry-run=server", "-f", "-")
	tries(t, bob, vm("own"), false, denied, "create", "--dry-run=server", "-f", "-")
	tries(t, bob, vm("legacy-2"), true, warning, "create", "--dry-run=server", "-f", "-")

	// A new manager applies the exceptions as soon as it is ready.
	restart(t, nil)
	tries(t, ada, vm("legacy-2"), true, warning, "create", "-f", "-")

	// After its end, it applies neither to updates nor in the audit, without any write.
	change := vm("legacy-1", gen.Spec("{runStrategy: Manual}"))
	tries(t, ada, change, true, warning, "apply", "--dry-run=server", "-f", "-")
	soon := time.Now().Add(2 * time.Second)
	tries(t, granter, exception("legacy", "excepted", "legacy-*", soon, ""), true, "configured", "apply", "-f", "-")
	tries(t, ada, change, false, denied, "apply", "--dry-run=server", "-f", "-")
	tries(t, ada, change, false, denied, "apply", "-f", "-")
	tries(t, granter, "", true, "False Expired: it ended at "+soon.UTC().Format(time.RFC3339), "get", "polex", "legacy", "-o",
		`jsonpath={range .status.conditions[?(@.type=="Active")]}{.status} {.reason}: {.message}{end}`)
	audited(t, "excepted", 0, 2, "default/legacy-1: no excepted here at metadata.labels.test; fix: use another label", "default/legacy-2: no excepted here at metadata.labels.test; fix: use another label")
}

// excepted checks what is recorded about the VM legacy-1, which violates policy excepted.
func excepted(t *testing.T) {
	t.Helper()
	// The audit begins again when the labels of a namespace change.
	must(t, "", "label", "namespace", "default", "audited=again", "--overwrite")
	const uses = `jsonpath={.status.audit.virtualMachines}{range .status.audit.uses[*]} {.namespace}/{.name} {.policy}{end}`
	tries(t, nil, "", true, "1 default/legacy-1 excepted", "get", "polex", "legacy", "-o", uses)
	tries(t, nil, "", true, "0 violating, 1 excepted", "get", "vmpol", "excepted", "-o", `jsonpath={.status.audit.violating} violating, {.status.audit.excepted} excepted`)
	tries(t, nil, "", true, "VirtualMachine legacy-1: excepted, skip, legacy, change 4711", "get", "reports.openreports.io", "stencil", "--namespace=default", "-o",
		`jsonpath={range .results[*]}{.resources[0].kind} {.resources[0].name}: {.policy}, {.result}, {.properties.exception}, {.properties.exceptionReason}{"\n"}{end}`)
	tries(t, nil, "", true, "PolicyExcepted: violates policy excepted, which PolicyException legacy allows until ", "get", "events", "--field-selector=involvedObject.name=legacy-1",
		"-o", `jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}`)
	tries(t, nil, "", true, "legacy True True 1", "get", "polex", "legacy", "-o",
		`jsonpath={.metadata.name}{range .status.conditions[*]} {.status}{end} {.status.audit.virtualMachines}`)
	metrics, err := stencil.first.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`stencil_policy_exceptions_used_total{exception="legacy",policy="excepted"} 1`, `stencil_policy_exceptions{state="active"} 1`,
		`stencil_policy_exception_expiry_timestamp_seconds{exception="legacy"} `, `stencil_audit_policy_machines{policy="excepted",result="excepted"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// Who may write exceptions grants them only from policies that they may except.
func TestWhoGrantsExceptions(t *testing.T) {
	some := harness.User(t, stencil.Plane, "some")
	harness.Grant(t, stencil.Plane, some, "",
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"policyexceptions"}, Verbs: []string{"*"}},
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"virtualmachinepolicies"}, ResourceNames: []string{"mine"}, Verbs: []string{"except"}})
	admin := harness.User(t, stencil.Plane, "writes-policies", gen.Role("", "stencil-policy-admin"))
	t.Cleanup(func() { must(t, "", "delete", "polex", "--all") })
	month := time.Now().Add(30 * 24 * time.Hour)
	try := func(policies string, expires time.Time) string {
		return exception("granted", policies, "a", expires, "")
	}
	const foreign = "no permission for exceptions from VirtualMachinePolicy foreign: ask an administrator for verb except on virtualmachinepolicies.stencil.kubevirt.io"

	tries(t, admin, try("mine", month), false, `cannot create resource "policyexceptions"`, "create", "-f", "-")
	tries(t, some, try("mine, foreign", month), false, foreign, "create", "-f", "-")
	tries(t, some, try("mine", time.Now().Add(-time.Minute)), false, "spec.expiresAt must be in the future", "create", "-f", "-")
	tries(t, some, try("mine", time.Now().Add(367*24*time.Hour)), false, "spec.expiresAt must be at most 366 days after the creation of the PolicyException", "create", "-f", "-")
	// The API server replaces a creation time of the user.
	tries(t, some, strings.Replace(try("mine", time.Now().Add(367*24*time.Hour)), "{name: granted}", `{name: granted, creationTimestamp: "2099-01-01T00:00:00Z"}`, 1), false,
		"spec.expiresAt must be at most 366 days", "create", "-f", "-")
	tries(t, some, try("mine", month), true, "created", "create", "-f", "-")
	tries(t, some, try("foreign", month), false, foreign, "apply", "-f", "-")
	tries(t, some, try("foreign", month), false, foreign, "replace", "-f", "-")

	// The rules hold without a manager, and so does the permission to withdraw an exception.
	restart(t, func() {
		tries(t, some, try("foreign", month), false, foreign, "replace", "-f", "-")
		tries(t, some, "", true, "deleted", "delete", "polex", "granted")
		tries(t, some, try("mine", month), true, "created", "create", "-f", "-")
	})
	tries(t, some, "", true, "Ready=False UnknownPolicies: these VirtualMachinePolicies do not exist: mine", "get", "polex", "granted", "-o",
		`jsonpath={range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}`)
}
