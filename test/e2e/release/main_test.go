// Package release_test builds a release, pushes it into a registry on loopback, pulls and installs the chart from there, and runs Stencil's servers
// from the images that the chart names, as the chart's pods run them. The images are for the architecture of the host.
package release_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/images"
	"github.com/vmstencil/stencil/test/platform"
	"github.com/vmstencil/stencil/test/product"
	"github.com/vmstencil/stencil/test/release"
)

const (
	version = "v1.2.3-test"
	tag     = "1.2.3-test"
)

var (
	registry *images.Registry
	built    *release.Release
	stencil  *platform.Platform
	// ada has the role edit in the namespaces of the tests, and may use the golden templates and process templates.
	ada *controlplane.User

	namespaces = harness.Namespaces{Prefix: "release", Members: map[string]string{editors: "edit", processors: "stencil-template-process"}}
)

const (
	editors    = "release-editors"
	processors = "release-processors"
)

// What the tests of the image of stencil-defaulter add, with the build tag debian: CI does not run them, because Debian's mirrors remove the
// packages of the lock file when they have newer ones.
var (
	become = func() {}
	flags  []string
)

func TestMain(m *testing.M) {
	become()
	harness.Main(m, start)
}

func start(ctx context.Context) (stop func() error, err error) {
	root, err := product.Root()
	if err != nil {
		return nil, err
	}
	stencil, stop, err = platform.StartReleased(ctx, func(folder string, from *images.Registry) (platform.Options, error) {
		registry = from
		built, err = release.Build(ctx, version, root, folder, registry.Address()+"/stencil", flags...)
		if err != nil {
			return platform.Options{}, err
		}
		return platform.Options{KubeVirt: true, ControllerManager: true, APIServer: true, Chart: built.ChartAddress, Container: built.Container}, nil
	})
	if err != nil {
		return stop, err
	}
	namespaces.Plane = stencil.Plane
	if err := harness.Apply(ctx, stencil.Plane, "", stencil.Example("golden")); err != nil {
		return stop, err
	}
	ada, err = gen.User(ctx, stencil.Plane, "ada", gen.Group(editors, processors), gen.Role("golden", "view"), gen.UsesTemplates("golden"))
	return stop, err
}

// decode decodes JSON.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var tree map[string]any
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return tree
}
