package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Unpack writes the files of all packages to a folder, which must exist. Place returns the name of a file in the folder; for an empty one the file is
// left out. Absolute links become relative ones, so that they stay in the folder.
func (s Source) Unpack(ctx context.Context, lock *Lock, folder string, place func(name string) string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("unpacking packages: %w", err)
	}
	defer root.Close()
	for _, p := range lock.Packages {
		content, err := s.Read(ctx, lock, p)
		if err != nil {
			return err
		}
		_, files, err := unpack(content, func(name string) bool { return place(name) != "" })
		if err != nil {
			return fmt.Errorf("unpacking the package %s %s: %w", p.Name, p.Version, err)
		}
		for _, file := range files {
			if err := file.write(root, place(file.Name)); err != nil {
				return fmt.Errorf("unpacking %s of the package %s %s: %w", file.Name, p.Name, p.Version, err)
			}
		}
	}
	return nil
}

// write writes a file that does not exist yet.
func (f File) write(root *os.Root, name string) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if f.Link != "" {
		to := f.Link
		if absolute, ok := strings.CutPrefix(to, "/"); ok {
			relative, err := filepath.Rel(path.Dir(name), absolute)
			if err != nil {
				return err
			}
			to = relative
		}
		return root.Symlink(to, name)
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, os.FileMode(f.Mode))
	if err != nil {
		return err
	}
	_, err = file.Write(f.Content)
	return errors.Join(err, file.Close())
}
