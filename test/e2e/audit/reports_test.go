package audit_test

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

// reportDefinitions returns the folder of OpenReports' own CustomResourceDefinitions, in the module with the types.
func reportDefinitions(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openreports/reports-api").Output()
	if err != nil {
		t.Fatalf("locating the module of OpenReports: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "config", "crd")
}

func TestReports(t *testing.T) {
	plane, leader := start(t)
	golden, team, idle := namespace(t, plane), namespace(t, plane), namespace(t, plane)
	own(t, plane, small(golden, "small", 2), "apply", "-f", "-")
	store(t, plane,
		rendered(t, plane, team, "good", golden+"/small", nil),
		set(t, rendered(t, plane, team, "resized", golden+"/small", nil), int64(64), "spec", "template", "spec", "domain", "cpu", "cores"),
	)
	name := "reports-" + team
	apply(t, plane, approve(name, golden, gen.Governs(team, idle)))
	cause := "differs from template " + golden + "/small at spec.template.spec.domain.cpu.cores"
	awaitFinding(t, plane, name, finding{Conforming: 1, Violating: 1, Causes: []string{"resized: " + cause}})
	if got := leader.metric(t, "stencil_audit_reports_served", nil); got != 0 {
		t.Fatalf("Reports are served: %v", got)
	}

	// The definitions are installed while the manager runs.
	definitions, err := controlplane.ReadCRDs(reportDefinitions(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.InstallCRDs(t.Context(), definitions...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		kubectl(t, plane, "", "delete", "customresourcedefinition", "reports.openreports.io", "clusterreports.openreports.io")
	})
	report := func(namespace string) string {
		got, err := lookup(t, plane, "get", "reports.openreports.io", "stencil", "--namespace", namespace, "--ignore-not-found", "-o",
			`jsonpath={.summary.pass} passed, {.summary.fail} failed{range .results[*]}; {.resources[0].kind} {.resources[0].name}: {.policy}, {.rule}, {.result}, {.severity}, {.message}{end}`)
		if err != nil {
			return err.Error()
		}
		return got
	}
	await := func(namespace, want string) {
		t.Helper()
		harness.Within(t, "the Report of "+namespace+" is as wanted", timeout, func() error {
			if diff := cmp.Diff(want, report(namespace)); diff != "" {
				return fmt.Errorf("report of %s (-want +got):\n%s", namespace, diff)
			}
			return nil
		})
	}
	await(team, "1 passed, 1 failed; VirtualMachine resized: "+name+", DifferentFromTemplate, fail, high, "+cause)
	await(idle, "")
	if got := leader.metric(t, "stencil_audit_reports_served", nil); got != 1 {
		t.Errorf("Reports are not served: %v", got)
	}

	// A Report of another source.
	apply(t, plane, "apiVersion: openreports.io/v1alpha1\nkind: Report\nmetadata: {name: theirs, namespace: "+idle+"}\nsource: other\n")

	// A change or deletion of a VM triggers the update.
	own(t, plane, "", "delete", "virtualmachine", "resized", "--namespace", team)
	await(team, "1 passed, 0 failed")
	kubectl(t, plane, "", "label", "namespace", idle, "touched=yes")

	version := func() string {
		got, err := lookup(t, plane, "get", "reports.openreports.io", "stencil", "--namespace", team, "-o", "jsonpath={.metadata.resourceVersion}")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	before, audits := version(), leader.metric(t, "stencil_audit_last_success_timestamp_seconds", nil)
	kubectl(t, plane, "", "label", "namespace", idle, "touched-")
	harness.Within(t, "there is another audit", timeout, func() error {
		if leader.metric(t, "stencil_audit_last_success_timestamp_seconds", nil) == audits {
			return fmt.Errorf("there was no audit")
		}
		return nil
	})
	if after := version(); after != before {
		t.Error("a Report that says the same was written again")
	}

	kubectl(t, plane, "", "delete", "templateapproval", name)
	await(team, "")
	if _, err := lookup(t, plane, "get", "reports.openreports.io", "theirs", "--namespace", idle); err != nil {
		t.Errorf("somebody else's Report: %v", err)
	}
}
