package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/traffic"
)

// TestReleasesReplaceEachOtherUnderWrites upgrades the release to other values and rolls back, with the pods of real Deployments. Each completes by
// itself, and no write is denied or lost meanwhile.
func TestReleasesReplaceEachOtherUnderWrites(t *testing.T) {
	writes, err := traffic.Start(t.Context(), traffic.Options{
		Plane: kube.Plane, Template: "golden/halted", Rate: 4, MaxDuration: time.Hour,
		Kinds: []traffic.Kind{traffic.CreateVM, traffic.CreateVMFromTemplate, traffic.UpdateVMSpec, traffic.LabelNamespace},
	})
	if err != nil {
		t.Fatal(err)
	}
	upgrade := func(values map[string]any) func() error {
		return func() error { return kube.InstallStencil(t.Context(), values) }
	}
	rollback := func() error {
		result, err := kube.Plane.Helm(t.Context(), "rollback", install.Release, "--namespace", install.Namespace, "--wait", "--timeout", "4m")
		if err == nil && result.Code != 0 {
			err = fmt.Errorf("helm rollback: %s", result.Stderr)
		}
		return err
	}
	var table strings.Builder
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"the aggregated API and revisions are added", upgrade(map[string]any{"apiserver": map[string]any{"enabled": true}, "revisions": map[string]any{"write": true}})},
		{"rollback", rollback},
		{"disks are not lent", upgrade(map[string]any{"diskAccess": map[string]any{"mode": "None"}})},
		{"rollback", rollback},
	} {
		began := time.Now()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if err := writes.AwaitWritten(t.Context(), 4); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		during := writes.Report().Between(began, time.Now())
		fmt.Fprintf(&table, "%-45s %4d written, %d denied or lost\n", step.name, during.Count(traffic.Written), len(during.Writes)-during.Count(traffic.Written))
		if during.Count(traffic.Written) != len(during.Writes) {
			t.Errorf("%s:\n%s", step.name, during)
		}
	}
	if _, err := writes.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", table.String())
}

// TestUninstallationLeavesVMsRunning removes the release. Nothing of it is left but definitions, VMs run on, and new ones can be created.
func TestUninstallationLeavesVMsRunning(t *testing.T) {
	namespace := namespaces.Of(t)
	create(t, namespace, "stays")
	running(t, namespace, "stays")
	result, err := kube.Plane.Helm(t.Context(), "uninstall", install.Release, "--namespace", install.Namespace, "--wait", "--timeout", "4m")
	if err != nil || result.Code != 0 {
		t.Fatalf("helm uninstall: %v %s", err, result.Stderr)
	}
	// The hook runs once: a leader that the kubelet starts again does not take its Lease.
	events := harness.Must(t, kube.Plane, nil, "", "get", "events", "--namespace="+install.Namespace, "--field-selector=reason=SuccessfulCreate,involvedObject.kind=Job", "--output=jsonpath={range .items[*]}{.message}{\"\\n\"}{end}").Stdout
	if pods := strings.Count(events, "Created pod: stencil-uninstall-"); pods != 1 {
		t.Errorf("the hook before the uninstallation has run %d times, want once:\n%s", pods, events)
	}
	kinds := []string{
		"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
		"mutatingadmissionpolicies", "apiservices", "clusterroles", "clusterrolebindings", "priorityclasses",
	}
	harness.Eventually(t, "nothing of the release is left", func() error {
		// APIServices with this label belong to definitions, which stay.
		left := strings.Fields(harness.Must(t, kube.Plane, nil, "", "get", strings.Join(kinds, ","), "--selector=!kube-aggregator.kubernetes.io/automanaged", "--output=name").Stdout)
		inside := harness.Must(t, kube.Plane, nil, "", "get", "pods,jobs,deployments,services,serviceaccounts,roles,rolebindings,networkpolicies", "--namespace="+install.Namespace, "--output=name").Stdout
		inside = strings.ReplaceAll(inside, "serviceaccount/default", "")
		left = slices.DeleteFunc(left, func(name string) bool { return !strings.Contains(name, "stencil") })
		return harness.Complaint(strings.Join(append(left, strings.Fields(inside)...), " "))
	})
	running(t, namespace, "stays")
	plain := `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "plain"},
		"spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}, "memory": {"guest": "64Mi"}}}}}}`
	harness.Must(t, kube.Plane, ada, plain, "create", "--namespace="+namespace, "--filename=-")
}
