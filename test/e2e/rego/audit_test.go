package rego_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// audited waits until the status of a policy has these counts and violations: "NAMESPACE/NAME: CAUSE".
func audited(t *testing.T, name string, conforming, violating int32, violations ...string) {
	t.Helper()
	harness.Eventually(t, "policy "+name+" is audited", func() error {
		object := get(t, name)
		audit := object.Status.Audit
		if audit == nil || audit.Conforming == nil || audit.Violating == nil || audit.LastTime == nil {
			return fmt.Errorf("policy %s has not been audited: %+v", name, audit)
		}
		var got []string
		for _, v := range audit.Violations {
			got = append(got, v.Namespace+"/"+v.Name+": "+v.Cause)
		}
		if *audit.Conforming != conforming || *audit.Violating != violating || audit.Generation != object.Generation || cmp.Diff(violations, got) != "" {
			return fmt.Errorf("policy %s: %d conform, %d do not: %q; want %d, %d, %q", name, *audit.Conforming, *audit.Violating, got, conforming, violating, violations)
		}
		return nil
	})
}

// needReports installs OpenReports' own CustomResourceDefinitions, which are in the module that brings the types.
func needReports(t *testing.T) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openreports/reports-api").Output()
	if err != nil {
		t.Fatalf("locating the module of OpenReports: %v", err)
	}
	definitions, err := controlplane.ReadCRDs(filepath.Join(strings.TrimSpace(string(out)), "config", "crd"))
	if err != nil {
		t.Fatal(err)
	}
	if err := stencil.InstallCRDs(t.Context(), definitions...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		must(t, "", "delete", "customresourcedefinition", "reports.openreports.io", "clusterreports.openreports.io")
	})
}

func TestStoredMachinesAreAudited(t *testing.T) {
	needReports(t)
	must(t, instancetype("VirtualMachineClusterInstancetype", "audit-huge", "", 64), "apply", "-f", "-")
	vm := func(name, spec string) string { return vmManifest(name, "audited", gen.Spec(spec)) }
	for _, one := range []string{vm("audit-1", "{}"), vm("audit-2", "{instancetype: {name: audit-huge}}"), vm("audit-3", "{instancetype: {name: audit-gone}}")} {
		must(t, one, "create", "-f", "-")
	}
	t.Cleanup(func() {
		must(t, "", "delete", "vmpol", "audited", "--ignore-not-found")
		must(t, "", "delete", "virtualmachineclusterinstancetype", "audit-huge", "audit-gone", "--ignore-not-found")
		must(t, "", "delete", "vm", "audit-1", "audit-2", "audit-3", "--ignore-not-found")
	})
	module := `package x
deny contains {"msg": sprintf("%v CPUs are more than LIMIT", [cpus.count]), "field": cpus.field} if {
  some cpus in data.lib.cpus
  cpus.count > LIMIT
}`
	const match = "match: {objectSelector: {matchLabels: {test: audited}}}\n"
	const unknown = `default/audit-3: could not be evaluated: Not found: "VirtualMachineClusterInstancetype audit-gone": it does not exist at spec.instancetype`
	applied(t, "audited", match+"enforcement: Audit", strings.ReplaceAll(module, "LIMIT", "4"))
	audited(t, "audited", 1, 2, "default/audit-2: 64 CPUs are more than 4 at spec.instancetype.name", unknown)

	// The audit runs again when the policy changes,
	applied(t, "audited", match+"enforcement: Audit", strings.ReplaceAll(module, "LIMIT", "64"))
	audited(t, "audited", 2, 1, unknown)
	// and when an instance type does.
	must(t, instancetype("VirtualMachineClusterInstancetype", "audit-gone", "", 100), "apply", "-f", "-")
	audited(t, "audited", 2, 1, "default/audit-3: 100 CPUs are more than 64 at spec.instancetype.name")
	harness.Eventually(t, "the Report tells of the violation", func() error {
		const want = "2 passed, 1 failed; VirtualMachine audit-3: audited, deny, fail, medium, 100 CPUs are more than 64 at spec.instancetype.name"
		result := kubectl(t, "", "get", "reports.openreports.io", "stencil", "--namespace=default", "-o",
			`jsonpath={.summary.pass} passed, {.summary.fail} failed{range .results[*]}; {.resources[0].kind} {.resources[0].name}: {.policy}, {.rule}, {.result}, {.severity}, {.message}{end}`)
		if diff := cmp.Diff(want, result.Stdout); diff != "" {
			return fmt.Errorf("Report (-want +got):\n%s%s", diff, result.Stderr)
		}
		return nil
	})
	columns := strings.Fields(strings.Split(must(t, "", "get", "vmpol", "audited"), "\n")[1])
	if !strings.Contains(strings.Join(columns, " "), "audited Audit True True True 1") {
		t.Errorf("columns: %s", columns)
	}
	harness.Eventually(t, "the metrics count the machines", func() error {
		metrics, err := stencil.first.Metrics(t.Context())
		if err != nil {
			return err
		}
		for _, want := range []string{`stencil_audit_policy_machines{policy="audited",result="conforming"} 2`, `stencil_audit_policy_machines{policy="audited",result="violating"} 1`} {
			if !strings.Contains(metrics, want) {
				return fmt.Errorf("the metrics lack %s", want)
			}
		}
		return nil
	})
}
