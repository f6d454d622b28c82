package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// reference is the annotation with the name of an image in an OCI layout.
const reference = "org.opencontainers.image.ref.name"

// Store has images in a folder, as an OCI layout.
type Store struct{ path layout.Path }

// Open opens a store, and creates it if there is none.
func Open(folder string) (*Store, error) {
	path, err := layout.FromPath(folder)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(folder, 0o755); err == nil {
			path, err = layout.Write(folder, empty.Index)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening the store of images: %w", err)
	}
	return &Store{path: path}, nil
}

// Blobs is the folder of the blobs: the content with the digest sha256:D is sha256/D in it.
func (s *Store) Blobs() string { return filepath.Join(string(s.path), "blobs") }

// Add adds an image under a reference, unless it is there.
func (s *Store) Add(name string, image v1.Image) error {
	if err := s.path.AppendImage(image, layout.WithAnnotations(map[string]string{reference: name})); err != nil {
		return fmt.Errorf("storing the image %s: %w", name, err)
	}
	return nil
}

// All returns the images by their references.
func (s *Store) All() (map[string]v1.Image, error) {
	index, err := s.path.ImageIndex()
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	images := map[string]v1.Image{}
	for _, each := range manifest.Manifests {
		if images[each.Annotations[reference]], err = s.path.Image(each.Digest); err != nil {
			return nil, err
		}
	}
	return images, nil
}
