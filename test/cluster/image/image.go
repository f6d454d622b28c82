// Package image makes the container images of a cluster without a container engine: those of KubeVirt, from its programs and Debian's packages, the one
// that holds the namespaces of pods, and disks of guests.
package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Layer is a layer of images, in a file.
type Layer struct{ path string }

// NewLayer writes a layer to a file: the files of a root file system, if root is not empty, and more files.
func NewLayer(path, root string, files ...File) (Layer, error) {
	// Written under another name, so that a file with this name is complete.
	partial := path + ".partial"
	err := writeLayer(partial, root, files)
	if err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		return Layer{}, errors.Join(fmt.Errorf("making the layer %s: %w", filepath.Base(path), err), os.RemoveAll(partial))
	}
	return Layer{path: path}, nil
}

func writeLayer(path, root string, files []File) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	archive := tar.NewWriter(file)
	if root != "" {
		if err := writeFolder(archive, root); err != nil {
			return err
		}
	}
	if err := writeFiles(archive, files); err != nil {
		return err
	}
	return errors.Join(archive.Close(), file.Close())
}

// New returns an image for x86-64 with layers, whose programs run as a user.
func New(user string, entrypoint []string, layers ...Layer) (v1.Image, error) {
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS: "linux", Architecture: "amd64", Created: v1.Time{Time: created}, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{User: user, Entrypoint: entrypoint, Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
	})
	if err != nil {
		return nil, err
	}
	for _, each := range layers {
		// It is not compressed: it never leaves this host.
		layer, err := tarball.LayerFromFile(each.path, tarball.WithCompressionLevel(0))
		if err != nil {
			return nil, err
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			return nil, err
		}
	}
	return image, nil
}
