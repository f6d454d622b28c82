// Package release_test builds a release, pushes it into a registry on loopback, pulls and installs the chart from there, and runs Stencil's servers
// from the images that the chart names, as the chart's pods run them. The images are for the architecture of the host.
package release_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
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
	built   *release.Release
	stencil *platform.Platform
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
	folder, err := os.MkdirTemp("", "stencil-release-")
	if err != nil {
		return nil, err
	}
	// The users of the containers enter it.
	if err := os.Chmod(folder, 0o755); err != nil {
		return nil, err
	}
	registry := images.Start()
	stop = func() error {
		registry.Close()
		return os.RemoveAll(folder)
	}
	root, err := product.Root()
	if err != nil {
		return stop, err
	}
	if built, err = release.Build(ctx, version, root, folder, registry.Address()+"/stencil", flags...); err != nil {
		return stop, err
	}
	stencil, err = platform.Start(ctx, platform.Options{KubeVirt: true, ControllerManager: true, APIServer: true, Chart: built.Chart, Container: built.Container})
	if err != nil {
		return stop, err
	}
	stop = func() error {
		err := stencil.Stop()
		registry.Close()
		return errors.Join(err, os.RemoveAll(folder))
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
