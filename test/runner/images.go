package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/vmstencil/stencil/test/images"
	"github.com/vmstencil/stencil/test/release"
)

// imagesVersion of the release whose images tests run.
const imagesVersion = "v0.0.0-images"

// shareRelease builds a release and pushes it into a registry on loopback, until stop. Package platform finds it in the environment, which tests
// inherit.
func shareRelease(ctx context.Context, root, folder string, out io.Writer) (stop func(), err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("servers in containers need root")
	}
	began := time.Now()
	own := filepath.Join(folder, "release")
	if err := os.Mkdir(own, 0o755); err != nil {
		return nil, err
	}
	registry := images.Start()
	built, err := release.Build(ctx, imagesVersion, root, own, registry.Address()+"/stencil")
	var described string
	if err == nil {
		described, err = built.Describe()
	}
	if err == nil {
		err = os.Setenv(release.Variable, described)
	}
	if err != nil {
		registry.Close()
		return nil, fmt.Errorf("building images: %w", err)
	}
	fmt.Fprintf(out, "images built (%.0f s)\n", time.Since(began).Seconds())
	return registry.Close, nil
}
