// Package library_test installs the chart with every policy of the library enabled, as a cluster admin could in the first installation, and runs the
// commands of docs/policies.
package library_test

import (
	"context"
	"os"
	"testing"

	"github.com/vmstencil/stencil/policies/library"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/platform"
)

var (
	stencil *platform.Platform
	// ada owns VirtualMachines in team-a and may use the golden templates.
	ada *controlplane.User
)

func TestMain(m *testing.M) { harness.Main(m, start) }

func start(ctx context.Context) (stop func() error, err error) {
	names, err := policyNames()
	if err != nil {
		return nil, err
	}
	// With enforcement Audit they only count violations and deny nothing.
	switchedOn := map[string]any{}
	for _, name := range names {
		switchedOn[name] = map[string]any{"enabled": true, "enforcement": "Audit"}
	}
	if stencil, err = platform.Start(ctx, platform.Options{
		KubeVirt: true,
		// The garbage collector deletes the policies with the release.
		ControllerManager: true,
		Log:               os.Stderr,
		Values:            map[string]any{"policies": map[string]any{"library": switchedOn}},
		ManagerArgs:       []string{"--decision-log-sample=1"},
	}); err != nil {
		return nil, err
	}
	if ada, err = gen.User(ctx, stencil.Plane, "ada", gen.Group("team-a")); err != nil {
		return stencil.Stop, err
	}
	return stencil.Stop, harness.Apply(ctx, stencil.Plane, "", stencil.Example("golden"), stencil.Example("access"))
}

// policyNames of the library.
func policyNames() ([]string, error) {
	all, err := library.Policies()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(all))
	for i, policy := range all {
		names[i] = policy.Name
	}
	return names, nil
}

func kubectl(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, stencil.Plane, as, stdin, arguments...)
}

func must(t *testing.T, stdin string, arguments ...string) string {
	t.Helper()
	return harness.Must(t, stencil.Plane, nil, stdin, arguments...).Stdout
}

// eventually polls until missing returns nothing. The parameter what completes the sentence "waiting until …".
func eventually(t *testing.T, what string, missing func() string) {
	t.Helper()
	harness.Eventually(t, what, func() error { return harness.Complaint(missing()) })
}
