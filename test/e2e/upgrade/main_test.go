// Package upgrade_test upgrades Stencil from an older release to that of this checkout with helm, and goes back, while users create VMs. Both run from
// their images.
package upgrade_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/images"
	"github.com/vmstencil/stencil/test/platform"
	"github.com/vmstencil/stencil/test/product"
	"github.com/vmstencil/stencil/test/release"
	"github.com/vmstencil/stencil/test/stencilctl"
)

const (
	// before is the commit of the older release: until there is a published one, the last one before parameters were mutable.
	before        = "1e51549c89089e0f75e5fc24d9d05a60289a65a7"
	beforeVersion = "v0.0.1-test"
	version       = "v0.0.2-test"

	free, governed = "free", "governed"
)

var (
	older, newer *release.Release
	stencil      *platform.Platform
	// ada has the role edit in both namespaces, and may use the golden templates and process templates.
	ada *controlplane.User
)

func TestMain(m *testing.M) { harness.Main(m, start) }

func start(ctx context.Context) (stop func() error, err error) {
	if binary, err = stencilctl.Binary(ctx); err != nil {
		return nil, err
	}
	root, err := product.Root()
	if err != nil {
		return nil, err
	}
	stencil, stop, err = platform.StartReleased(ctx, func(folder string, registry *images.Registry) (platform.Options, error) {
		clone, err := checkout(ctx, root, filepath.Join(folder, "before"))
		if err != nil {
			return platform.Options{}, err
		}
		for _, each := range []struct {
			release       **release.Release
			version, root string
		}{{&older, beforeVersion, clone}, {&newer, version, root}} {
			own := filepath.Join(folder, each.version)
			if err := os.Mkdir(own, 0o755); err != nil {
				return platform.Options{}, err
			}
			if *each.release, err = release.Build(ctx, each.version, each.root, own, registry.Address()+"/stencil"); err != nil {
				return platform.Options{}, err
			}
		}
		return platform.Options{
			KubeVirt: true, ControllerManager: true, APIServer: true, Replicated: true, Chart: older.ChartAddress, Container: older.Container,
			// Old servers serve until nothing reaches them any more, as in a pod. Package manager stops them at once otherwise.
			ManagerArgs: []string{"--shutdown-delay=3s"}, APIServerArgs: []string{"--shutdown-delay=3s"},
		}, nil
	})
	if err != nil {
		return stop, err
	}
	return stop, prepare(ctx)
}

// checkout returns the folder of the older release. A shallow clone has no older commits: then the older release is this checkout with another version.
func checkout(ctx context.Context, root, folder string) (string, error) {
	shallow, err := release.Run(ctx, root, "git", "rev-parse", "--is-shallow-repository")
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(shallow) == "true" {
		fmt.Fprintf(os.Stderr, "upgrade: this clone is shallow: the older release is built from this checkout, and not from %s\n", before)
		return root, nil
	}
	if _, err := release.Run(ctx, root, "git", "clone", "-q", "--shared", "--no-checkout", root, folder); err != nil {
		return "", err
	}
	_, err = release.Run(ctx, folder, "git", "checkout", "-q", before)
	return folder, err
}

func prepare(ctx context.Context) (err error) {
	prepared := gen.Manifest(gen.Namespace(free), gen.Namespace(governed), gen.Approval("golden", gen.Governs(governed), gen.Approves("golden/fedora")))
	if err := harness.Apply(ctx, stencil.Plane, prepared, stencil.Example("golden/00-namespace.yaml"), stencil.Example("golden/fedora.yaml"), "-"); err != nil {
		return err
	}
	ada, err = gen.User(ctx, stencil.Plane, "ada", gen.UsesTemplates("golden"), gen.Role(free, "edit"), gen.Role(governed, "edit"), gen.Role(free, "stencil-template-process"))
	return err
}
