package cluster

import (
	"context"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/vmstencil/stencil/test/cluster/image"
)

// pause returns the image that holds the namespaces of pods.
func pause(ctx context.Context, folder string) (v1.Image, error) {
	program := filepath.Join(folder, "pause")
	if err := build(ctx, "pause", program); err != nil {
		return nil, err
	}
	layer, err := image.NewLayer(filepath.Join(folder, "pause.tar"), "", image.File{Name: "pause", Mode: 0o755, From: program})
	if err != nil {
		return nil, err
	}
	return image.New("65535", []string{"/pause"}, layer)
}
