// Package outage_test stops, kills and restarts parts of a cluster with Stencil, and checks what users can do meanwhile and
// afterwards. It has a platform of its own.
package outage_test

import (
	"context"
	"os"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/platform"
)

const (
	// team is a namespace without approvals, vault one with an approval that denies.
	team  = "team-a"
	vault = "vault"
)

var (
	stencil *platform.Platform
	// ada may edit in team and vault and use the golden templates. She may process and create from templates of shelf.
	ada *controlplane.User
)

func TestMain(m *testing.M) { harness.Main(m, start) }

func start(ctx context.Context) (stop func() error, err error) {
	options := platform.SharedOptions
	options.Log = os.Stderr
	if stencil, err = platform.Start(ctx, options); err != nil {
		return nil, err
	}
	return stencil.Stop, prepare(ctx)
}

func prepare(ctx context.Context) (err error) {
	prepared := gen.Manifest(gen.Namespace(vault), gen.Namespace("shelf"), gen.Approval(vault, gen.Governs(vault), gen.Approves("golden/fedora")))
	if err := harness.Apply(ctx, stencil.Plane, prepared, stencil.Example("golden"), stencil.Example("access"), "-"); err != nil {
		return err
	}
	ada, err = gen.User(ctx, stencil.Plane, "ada", gen.Role(team, "edit"), gen.Role(vault, "edit"), gen.UsesTemplates("golden"))
	return err
}

// kubectl runs kubectl in a namespace.
func kubectl(t *testing.T, as *controlplane.User, namespace, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, stencil.Plane, as, stdin, harness.In(namespace, arguments)...)
}

// must runs kubectl and requires success.
func must(t *testing.T, as *controlplane.User, namespace, stdin string, arguments ...string) string {
	t.Helper()
	return harness.Must(t, stencil.Plane, as, stdin, harness.In(namespace, arguments)...).Stdout
}

// rendered is the manifest of a VM from the golden template fedora.
func rendered(name string) string {
	return gen.Manifest(gen.VM(name, gen.FromTemplate("golden/fedora")))
}

// plain is the manifest of a VM without a template.
func plain(name string) string { return gen.Manifest(gen.VM(name, gen.SmallSpec())) }

// withoutManager stops the only manager and returns a function that starts it again, which the end of the test calls too.
func withoutManager(t *testing.T) (start func()) {
	t.Helper()
	if err := stencil.StopManager(); err != nil {
		t.Fatal(err)
	}
	started := false
	start = func() {
		if started {
			return
		}
		started = true
		if err := stencil.StartManager(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(start)
	return start
}
