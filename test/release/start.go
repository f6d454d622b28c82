package release

import (
	"context"
	"errors"
	"os"

	"github.com/vmstencil/stencil/test/images"
	"github.com/vmstencil/stencil/test/platform"
)

// Start starts an empty registry, and then a platform with the options that prepare returns, which builds releases in a folder and pushes them. What it
// started is stopped by stop, also when it fails.
func Start(ctx context.Context, prepare func(folder string, registry *images.Registry) (platform.Options, error)) (p *platform.Platform, stop func() error, err error) {
	folder, err := os.MkdirTemp("", "stencil-release-")
	if err != nil {
		return nil, nil, err
	}
	registry := images.Start()
	stop = func() error {
		var err error
		if p != nil {
			err = p.Stop()
		}
		registry.Close()
		return errors.Join(err, os.RemoveAll(folder))
	}
	// The users of the containers enter it.
	if err := os.Chmod(folder, 0o755); err != nil {
		return nil, stop, err
	}
	options, err := prepare(folder, registry)
	if err != nil {
		return nil, stop, err
	}
	p, err = platform.Start(ctx, options)
	return p, stop, err
}
