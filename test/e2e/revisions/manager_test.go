package revisions_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/platform"
)

// With the chart and its permissions: in a governed namespace no user replaces a copy, not even an administrator, the manager does, and the condition
// proves that no old version is left. The policies of the API server are evaluated on real ControllerRevisions.
func TestTheInstalledManagerMigratesInAGovernedNamespace(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	p, err := platform.Start(ctx, platform.Options{ControllerManager: true, Log: os.Stderr, Values: map[string]any{"revisions": map[string]any{"write": true}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	must := func(stdin string, arguments ...string) string {
		t.Helper()
		return harness.Must(t, p.Plane, nil, stdin, arguments...).Stdout
	}
	namespace := harness.Namespace(t, p.Plane, "governed")
	const (
		uid = "8d1a7b0e-2a33-4c53-9b2a-3d1c9b1f6a10"
		old = "web-six-" + uid + "-2"
	)
	stored := func(name, vm string) string {
		return `{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"` + name + `","ownerReferences":[{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","name":"web","uid":"` + vm + `","controller":true,"blockOwnerDeletion":true}]},
			"revision":0,"data":{"apiVersion":"instancetype.kubevirt.io/v1alpha2","kind":"VirtualMachineClusterInstancetype","metadata":{"name":"six","uid":"` + uid + `","generation":2},"spec":{"cpu":{"guest":6},"memory":{"guest":"1Gi"}}}}`
	}
	must(`{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"web"},"spec":{"runStrategy":"Halted","instancetype":{"name":"six","revisionName":"`+old+`"},"template":{"spec":{"domain":{"devices":{}}}}}}`, "create", "-n", namespace, "-f", "-")
	vm := must("", "get", "vm", "web", "-n", namespace, "-o", "jsonpath={.metadata.uid}")
	must(stored(old, vm), "create", "-n", namespace, "-f", "-")
	must(gen.Manifest(gen.Approval("sizes", gen.Governs(namespace), gen.Approves("golden/fedora"))), "apply", "-f", "-")
	harness.Eventually(t, "the policy is enforced", func() error {
		got := harness.Kubectl(t, p.Plane, nil, "", "delete", "controllerrevision", old, "-n", namespace, "--dry-run=server")
		if !strings.Contains(got.Stderr, "this ControllerRevision stores the instance type or preference of a VirtualMachine, and KubeVirt and Stencil alone write it in a namespace that TemplateApproval sizes governs: to migrate it, use stencilctl revisions") {
			return harness.Complaint(got.Stdout + got.Stderr)
		}
		return nil
	})
	if got := harness.Kubectl(t, p.Plane, nil, stored("other", vm), "create", "-n", namespace, "-f", "-"); !strings.Contains(got.Stderr, "use stencilctl revisions") {
		t.Errorf("a user creates a copy: %s%s", got.Stdout, got.Stderr)
	}
	// The revisions of other owners are no concern of the policy.
	must(`{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"daemons"},"revision":1,"data":{"spec":{"template":{}}}}`, "create", "-n", namespace, "-f", "-")
	must("", "delete", "controllerrevision", "daemons", "-n", namespace)
	// A user with the role for it migrates, and no user with a role in the namespace.
	migrator, editor := harness.User(t, p.Plane, "migrator"), harness.User(t, p.Plane, "editor")
	harness.Bind(t, p.Plane, migrator, "", "stencil-revision-migration-admin")
	harness.Bind(t, p.Plane, editor, namespace, "admin")
	setMode := func(mode string) {
		t.Helper()
		harness.Must(t, p.Plane, migrator, `{"apiVersion":"stencil.kubevirt.io/v1alpha1","kind":"RevisionMigration","metadata":{"name":"instancetypes"},"spec":{"mode":"`+mode+`"}}`,
			"apply", "--server-side", "--force-conflicts", "-f", "-")
	}
	// A change of the mode starts a pass; without one, the next report is up to ten minutes away.
	setMode("DryRun")
	harness.Eventually(t, "the manager reports what a dry run found", func() error {
		return reports(t, p, migrator, "DryRun", "NoOldVersions=False OldVersionsStored")
	})
	setMode("Report")
	harness.Eventually(t, "the manager reports", func() error {
		return reports(t, p, migrator, "Report", "NoOldVersions=False OldVersionsStored")
	})
	for _, arguments := range [][]string{
		{"get", "revisionmigration", "instancetypes"},
		{"patch", "revisionmigration", "instancetypes", "--type=merge", "-p", `{"spec":{"mode":"Apply"}}`},
		{"delete", "revisionmigration", "instancetypes"},
	} {
		if got := harness.Kubectl(t, p.Plane, editor, "", arguments...); !strings.Contains(got.Stderr, "(Forbidden)") {
			t.Errorf("%v as an admin of a namespace: %s%s", arguments, got.Stdout, got.Stderr)
		}
	}
	setMode("Apply")
	harness.Eventually(t, "the manager has migrated", func() error {
		return reports(t, p, migrator, "Apply", "NoOldVersions=True AllCurrent")
	})
	if got := must("", "get", "controllerrevision", old, "-n", namespace, "-o", "jsonpath={.data.apiVersion} {.data.spec.cpu.guest} {.metadata.ownerReferences[0].uid}"); got != "instancetype.kubevirt.io/v1beta1 6 "+vm {
		t.Errorf("the copy is %s", got)
	}
	harness.Eventually(t, "an event is about the VirtualMachine", func() error {
		if got := must("", "get", "events", "-n", namespace, "-o", "jsonpath={.items[*].reason}"); !strings.Contains(got, "StoredInstancetypeMigrated") {
			return harness.Complaint(got)
		}
		return nil
	})
	// No user who has the token of the account can write anything else.
	account := harness.User(t, p.Plane, account)
	if got := harness.Kubectl(t, p.Plane, account, `{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"daemons"},"revision":1,"data":{"spec":{"template":{}}}}`, "create", "-n", namespace, "-f", "-"); !strings.Contains(got.Stderr, "writes ControllerRevisions with data of the API group instancetype.kubevirt.io only") {
		t.Errorf("the account creates the revision of a DaemonSet: %s%s", got.Stdout, got.Stderr)
	}
	// The garbage collector goes on.
	must("", "delete", "vm", "web", "-n", namespace)
	harness.Eventually(t, "the garbage collector deletes copy and backup", func() error {
		if left := must("", "get", "controllerrevisions", "-n", namespace, "-o", "name"); left != "" {
			return harness.Complaint(left)
		}
		return nil
	})
}

// reports compares, as the user reads it, the report about a mode: the condition NoOldVersions as TYPE=STATUS REASON.
func reports(t *testing.T, p *platform.Platform, user *controlplane.User, mode, want string) error {
	t.Helper()
	got := harness.Kubectl(t, p.Plane, user, "", "get", "revisionmigration", "instancetypes", "-o",
		`jsonpath={.spec.mode} {.metadata.generation}=={.status.observedGeneration} {range .status.conditions[?(@.type=="NoOldVersions")]}{.type}={.status} {.reason}{end}`)
	reported, condition, _ := strings.Cut(got.Stdout, " NoOldVersions")
	before, after, _ := strings.Cut(strings.TrimPrefix(reported, mode+" "), "==")
	if before != after || "NoOldVersions"+condition != want {
		return harness.Complaint(got.Stdout + got.Stderr)
	}
	return nil
}
