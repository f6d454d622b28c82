// Package beside_test checks what Stencil reports about KubeVirt's own template component. KubeVirt's controllers are its own; virt-operator does not run, so
// that the tests set the labels and the gate that it sets.
package beside_test

import (
	"context"
	"os"
	"testing"

	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/platform"
	"github.com/vmstencil/stencil/test/stencilctl"
)

var (
	stage *platform.Platform
	// binary is stencilctl.
	binary string
)

func TestMain(m *testing.M) {
	harness.Main(m, func(ctx context.Context) (func() error, error) {
		var err error
		if binary, err = stencilctl.Binary(ctx); err != nil {
			return nil, err
		}
		stage, err = platform.Start(ctx, platform.Options{KubeVirt: true, ManagerArgs: []string{"--installation-interval=1s"}, Log: os.Stderr})
		return func() error {
			if stage == nil {
				return nil
			}
			return stage.Stop()
		}, err
	})
}
