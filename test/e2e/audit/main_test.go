// Package audit_test runs the reconcilers of approved templates against a real API server, in this process but with the manager's permissions in the
// chart: the label of governed namespaces, the audit, and self-protection.
package audit_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// shared is a plane with the chart installed, and no manager. Stencil's webhook configurations are deleted, so that a test can store VirtualMachines
// that a webhook would deny.
var (
	shared = controlplane.Shared{Options: controlplane.Options{VirtualizationCRDs: true}, Prepare: prepare}
	// owner owns templates and VirtualMachines in the namespaces of the tests.
	owner *controlplane.User
)

func TestMain(m *testing.M) {
	// Each manager logs to its test.
	ctrl.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

func prepare(ctx context.Context, plane *controlplane.Plane) error {
	if err := install.Chart(ctx, plane, install.Options{}); err != nil {
		return err
	}
	for _, object := range []string{"mutatingwebhookconfiguration/a-stencil-render", "validatingwebhookconfiguration/stencil-validate"} {
		if result, err := plane.Kubectl(ctx, nil, "", "delete", object); err != nil || result.Code != 0 {
			return fmt.Errorf("deleting the %s: %w: %s", object, err, result.Stderr)
		}
	}
	var err error
	owner, err = gen.User(ctx, plane, "owner")
	return err
}

// kubectl runs kubectl as the administrator, requires success, and returns the standard output.
func kubectl(t *testing.T, plane *controlplane.Plane, stdin string, arguments ...string) string {
	t.Helper()
	return harness.Must(t, plane, nil, stdin, arguments...).Stdout
}

// own runs kubectl as the owner.
func own(t *testing.T, plane *controlplane.Plane, stdin string, arguments ...string) string {
	t.Helper()
	return harness.Must(t, plane, owner, stdin, arguments...).Stdout
}

// lookup runs a kubectl command that may fail because an object does not exist.
func lookup(t *testing.T, plane *controlplane.Plane, arguments ...string) (string, error) {
	t.Helper()
	result, err := plane.Kubectl(t.Context(), nil, "", arguments...)
	if err == nil && result.Code != 0 {
		err = fmt.Errorf("%s", strings.TrimSpace(result.Stderr))
	}
	return strings.TrimSpace(result.Stdout), err
}

// apply stores objects, and deletes them when the test ends.
func apply(t *testing.T, plane *controlplane.Plane, manifest string) {
	t.Helper()
	kubectl(t, plane, manifest, "apply", "-f", "-")
	t.Cleanup(func() { kubectl(t, plane, manifest, "delete", "--ignore-not-found", "--wait=false", "-f", "-") })
}

// namespace creates a unique namespace for the owner. KubeVirt's roles are not on this plane.
func namespace(t *testing.T, plane *controlplane.Plane) string {
	t.Helper()
	name := harness.Namespace(t, plane, "audit")
	harness.Bind(t, plane, owner, name, "stencil-edit")
	harness.Grant(t, plane, owner, name, rbacv1.PolicyRule{APIGroups: []string{"kubevirt.io"}, Resources: []string{"virtualmachines"}, Verbs: []string{"*"}})
	return name
}

// always polls for the time given, and fails the test as soon as the condition does not hold.
func always(t *testing.T, period time.Duration, condition func() error) {
	t.Helper()
	deadline := time.Now().Add(period)
	for time.Now().Before(deadline) {
		if err := condition(); err != nil {
			t.Fatal(err)
		}
		<-time.After(100 * time.Millisecond)
	}
}
