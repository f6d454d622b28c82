package debian

import (
	"bytes"
	"context"
	"fmt"
	"path"
)

// statusFolder has the control file of each package, where scanners look for the packages of an image without dpkg.
const statusFolder = "var/lib/dpkg/status.d/"

// Files returns the files of all packages of a lock file, each name once.
func (s Source) Files(ctx context.Context, lock *Lock) ([]File, error) {
	all := union{from: map[string]string{}}
	for _, p := range lock.Packages {
		content, err := s.Read(ctx, lock, p)
		if err != nil {
			return nil, err
		}
		control, files, err := unpack(content, needed)
		if err != nil {
			return nil, fmt.Errorf("unpacking the package %s %s: %w", p.Name, p.Version, err)
		}
		for _, file := range append(files, File{Name: statusFolder + p.Name, Mode: 0o644, Content: control}) {
			if err := all.add(p.Name, file); err != nil {
				return nil, err
			}
		}
	}
	return all.files, all.checkFolders()
}

// union are the files of several packages.
type union struct {
	files []File
	// from are the packages that files are from.
	from map[string]string
}

func (u *union) add(name string, file File) error {
	other, exists := u.from[file.Name]
	if !exists {
		u.from[file.Name] = name
		u.files = append(u.files, file)
		return nil
	}
	for _, each := range u.files {
		if each.Name == file.Name && (each.Mode != file.Mode || each.Link != file.Link || !bytes.Equal(each.Content, file.Content)) {
			return fmt.Errorf("the packages %s and %s have different files %s", other, name, file.Name)
		}
	}
	return nil
}

// checkFolders returns an error if a file is in a folder that is a file or a link in another package.
func (u *union) checkFolders() error {
	for _, file := range u.files {
		for folder := path.Dir(file.Name); folder != "."; folder = path.Dir(folder) {
			if other, exists := u.from[folder]; exists {
				return fmt.Errorf("the package %s has the file %s, and in the package %s is %s no folder", u.from[file.Name], file.Name, other, folder)
			}
		}
	}
	return nil
}
