package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/vmstencil/stencil/test/cluster/image"
	"github.com/vmstencil/stencil/test/product"
)

// pause returns the image that holds the namespaces of pods.
func pause(ctx context.Context, folder string) (v1.Image, error) {
	root, err := product.Root()
	if err != nil {
		return nil, err
	}
	program := filepath.Join(folder, "pause")
	command := exec.CommandContext(ctx, "go", "build", "-o", program, "./cluster/pause")
	command.Dir = filepath.Join(root, "test")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building pause: %w\n%s", err, output)
	}
	layer, err := image.NewLayer(filepath.Join(folder, "pause.tar"), "", image.File{Name: "pause", Mode: 0o755, From: program})
	if err != nil {
		return nil, err
	}
	return image.New("65535", []string{"/pause"}, layer)
}
