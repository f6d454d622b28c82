// Package probe_test depends on the product as end-to-end tests do, and does nothing else: the tests of package product run it to check when the Go
// command returns a cached result.
package probe_test

import (
	"context"
	"testing"

	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/stencilctl"
)

func TestMain(m *testing.M) {
	harness.Main(m, func(context.Context) (func() error, error) { return nil, nil })
}

func TestAProgramIsStarted(t *testing.T) {
	if _, err := (stencilctl.Command{Binary: "/bin/true"}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}
