package images

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// Unpack writes the files of an image to a folder, which must exist, as root owns them in the image.
func Unpack(image v1.Image, folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("unpacking an image: %w", err)
	}
	defer root.Close()
	content := mutate.Extract(image)
	defer content.Close()
	archive := tar.NewReader(content)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpacking an image: %w", err)
		}
		if err := unpack(root, header, archive); err != nil {
			return fmt.Errorf("unpacking %s: %w", header.Name, err)
		}
	}
}

func unpack(root *os.Root, header *tar.Header, content io.Reader) error {
	mode := header.FileInfo().Mode().Perm()
	if err := root.MkdirAll(path.Dir(path.Clean(header.Name)), 0o755); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(path.Clean(header.Name), mode)
	case tar.TypeSymlink:
		return root.Symlink(header.Linkname, header.Name)
	case tar.TypeReg:
		file, err := root.OpenFile(header.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, content)
		return errors.Join(err, file.Close())
	default:
		return fmt.Errorf("type %q is not expected in an image", header.Typeflag)
	}
}
