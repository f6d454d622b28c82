package platform

import (
	"context"
	"errors"
	"os"

	"github.com/vmstencil/stencil/test/images"
)

// StartReleased starts an empty registry, and then a platform with the options that prepare returns, which builds releases in a folder and pushes them. What it
// started is stopped by stop, also when it fails.
func StartReleased(ctx context.Context, prepare func(folder string, registry *images.Registry) (Options, error)) (p *Platform, stop func() error, err error) {
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
	p, err = Start(ctx, options)
	return p, stop, err
}
