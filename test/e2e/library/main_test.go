// Package library_test installs the chart with every policy of the library switched
// on, as a cluster admin could in the first installation, and runs what docs/policies
// tells admins to do.
package library_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/vmstencil/stencil/rego/library"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/platform"
)

// limit is how long anything may take.
const limit = 60 * time.Second

var (
	stencil *platform.Platform
	// ada owns machines in team-a and may use the golden templates.
	ada *controlplane.User
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	names, err := policyNames()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// They only count what they find, so that they are in nobody's way.
	switchedOn := map[string]any{}
	for _, name := range names {
		switchedOn[name] = map[string]any{"enabled": true, "enforcement": "Audit"}
	}
	stencil, err = platform.Start(ctx, platform.Options{
		KubeVirt: true,
		// The garbage collector takes the policies along when the release goes.
		ControllerManager: true,
		Log:               os.Stderr,
		Values:            map[string]any{"policies": map[string]any{"library": switchedOn}},
		ManagerArgs:       []string{"--decision-log-sample=1"},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := stencil.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if ada, err = stencil.Plane.User("ada", "team-a"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	out, err := stencil.Plane.Kubectl(ctx, nil, "", "apply", "-f", stencil.Example("golden"), "-f", stencil.Example("access"))
	if err != nil || out.Code != 0 {
		fmt.Fprintln(os.Stderr, err, out.Stderr)
		return 1
	}
	return m.Run()
}

// policyNames are those of the library.
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

func kubectl(t *testing.T, as *controlplane.User, stdin string, args ...string) controlplane.Result {
	t.Helper()
	// Cleanups call kubectl too, after the context of the test has ended.
	out, err := stencil.Plane.Kubectl(context.WithoutCancel(t.Context()), as, stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func must(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out := kubectl(t, nil, stdin, args...)
	if out.Code != 0 {
		t.Fatalf("kubectl %s: exit %d\n%s%s", strings.Join(args, " "), out.Code, out.Stdout, out.Stderr)
	}
	return out.Stdout
}

// eventually polls until nothing is missing, and fails with what was missing last.
func eventually(t *testing.T, missing func() string) {
	t.Helper()
	var last string
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		last = missing()
		return last == "", nil
	})
	if err != nil {
		t.Fatal(last)
	}
}
