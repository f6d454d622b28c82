package traffic_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/traffic"
)

// noSpecUpdates denies changes of the spec of a VirtualMachine.
const noSpecUpdates = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-spec-updates}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [kubevirt.io], apiVersions: [v1], operations: [UPDATE], resources: [virtualmachines]}]}
  validations:
  - expression: object.spec.template.spec.?terminationGracePeriodSeconds == oldObject.spec.template.spec.?terminationGracePeriodSeconds
    message: the spec is to stay as it is
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-spec-updates}
spec: {policyName: no-spec-updates, validationActions: [Deny]}
`

// start starts traffic that ends with the test.
func start(t *testing.T, options traffic.Options) *traffic.Traffic {
	t.Helper()
	running, err := traffic.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return running
}

func stop(t *testing.T, running *traffic.Traffic) traffic.Report {
	t.Helper()
	report, err := running.Stop()
	if err != nil {
		t.Error(err)
	}
	t.Logf("\n%s", report)
	return report
}

func TestADenialOfAPolicyIsNoOutage(t *testing.T) {
	plane := shared.Plane(t)
	running := start(t, traffic.Options{Plane: plane})
	if err := running.AwaitWritten(t.Context(), 2); err != nil {
		t.Error(err)
	}
	apply(t, plane, noSpecUpdates)
	harness.Eventually(t, "the policy denies", func() error {
		if running.Report().DeniedBy("no-spec-updates") == 0 {
			return fmt.Errorf("the policy has denied nothing:\n%s", running.Report())
		}
		return nil
	})
	report := stop(t, running)
	if n := report.DeniedBy("no-spec-updates"); n == 0 || n != report.Of(traffic.UpdateVMSpec).Count(traffic.Denied) || n != report.Count(traffic.Denied) {
		t.Errorf("want denials of updates of specs by the policy alone")
	}
	if n := report.Count(traffic.Unavailable) + report.Count(traffic.Rejected); n > 0 {
		t.Errorf("%d writes failed for other reasons", n)
	}
}

func TestARestartIsNoDenial(t *testing.T) {
	plane := controlplane.StartFor(t, controlplane.Options{VirtualizationCRDs: true})
	for _, tc := range []struct {
		name    string
		restart func(context.Context) error
	}{
		{"the API server", plane.RestartAPIServer},
		{"etcd", plane.RestartEtcd},
	} {
		t.Run(tc.name, func(t *testing.T) {
			running := start(t, traffic.Options{Plane: plane, Rate: 20})
			if err := running.AwaitWritten(t.Context(), 2); err != nil {
				t.Error(err)
			}
			if err := tc.restart(t.Context()); err != nil {
				t.Error(err)
			}
			if err := running.AwaitWritten(t.Context(), 2); err != nil {
				t.Error(err)
			}
			report := stop(t, running)
			if n := report.Count(traffic.Denied); n > 0 {
				t.Errorf("%d writes were denied, and there is no admission that could", n)
			}
			// Etcd is back before a write times out: writes that were sent in between only wait.
			if tc.name == "the API server" && report.Count(traffic.Unavailable) == 0 {
				t.Error("no write was unavailable while there was no API server")
			}
		})
	}
}

func TestTrafficEndsByItselfAndCleansUp(t *testing.T) {
	plane := shared.Plane(t)
	for name, options := range map[string]traffic.Options{
		"at its number of writes": {Plane: plane, Rate: 50, MaxWrites: 10},
		"at its duration":         {Plane: plane, MaxDuration: time.Second},
		"with its context":        {Plane: plane},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		running, err := traffic.Start(ctx, options)
		if err != nil {
			t.Fatal(err)
		}
		if name == "with its context" {
			cancel()
		}
		harness.Eventually(t, "the traffic has ended", func() error {
			if err := running.AwaitWritten(t.Context(), 1000); err == nil || !strings.Contains(err.Error(), "the traffic has ended") {
				return fmt.Errorf("%s: it has not ended: %w", name, err)
			}
			return nil
		})
		report := stop(t, running)
		if options.MaxWrites > 0 && len(report.Writes) != options.MaxWrites {
			t.Errorf("want %d writes, got %d", options.MaxWrites, len(report.Writes))
		}
	}
	vms := harness.Must(t, plane, nil, "", "get", "virtualmachines", "--all-namespaces", "-o", "name")
	if strings.Contains(vms.Stdout, "traffic-") {
		t.Errorf("VirtualMachines are left:\n%s", vms.Stdout)
	}
	client, err := kubernetes.NewForConfig(plane.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	bindings, err := client.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range bindings.Items {
		if len(one.Subjects) > 0 && strings.HasPrefix(one.Subjects[0].Name, "traffic-") {
			t.Errorf("the binding %s of %s is left", one.Name, one.Subjects[0].Name)
		}
	}
}
