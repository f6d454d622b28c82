package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// folderPrefix begins the name of every temporary plane folder, by which a later start finds those without an owner.
const folderPrefix = "stencil-plane-"

// ownerFile is the file in a plane's folder that its owner holds locked.
const ownerFile = "owner"

// folder is where a plane stores its files. While it is open, its owner holds a lock on a file in it; the kernel releases that lock when the owner's
// process ends for any reason.
type folder struct {
	path      string
	temporary bool
	owner     *os.File
}

// openFolder makes a temporary folder when path is empty, and otherwise takes over the empty folder at path.
func openFolder(path string) (*folder, error) {
	if path == "" {
		return temporaryFolder()
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("resolving the control plane's folder: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("making the control plane's folder: %w", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("reading the control plane's folder: %w", err)
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("the control plane's folder %s is not empty", path)
	}
	return furnish(&folder{path: path})
}

func temporaryFolder() (*folder, error) {
	removeOrphans(os.TempDir())
	made, err := os.MkdirTemp("", "stencil-new-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the control plane: %w", err)
	}
	f, err := furnish(&folder{path: made, temporary: true})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(made))
	}
	// Only now, with the lock held, does the folder get the prefix by which removeOrphans finds folders.
	f.path = filepath.Join(filepath.Dir(made), folderPrefix+strings.TrimPrefix(filepath.Base(made), "stencil-new-"))
	if err := os.Rename(made, f.path); err != nil {
		return nil, errors.Join(fmt.Errorf("naming the control plane's folder: %w", err), f.owner.Close(), os.RemoveAll(made))
	}
	return f, nil
}

// furnish locks the folder and makes what every folder contains.
func furnish(f *folder) (*folder, error) {
	for _, name := range []string{"logs", "pki", "kubeconfigs", "home", "tmp"} {
		if err := os.Mkdir(f.file(name), 0o700); err != nil {
			return nil, fmt.Errorf("preparing the control plane's folder: %w", err)
		}
	}
	owner, err := Lock(f.file(ownerFile), os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("locking the control plane's folder: %w", err)
	}
	f.owner = owner
	return f, nil
}

// file returns the path of a file in the folder.
func (f *folder) file(elements ...string) string {
	return filepath.Join(append([]string{f.path}, elements...)...)
}

// write creates a file that only its owner may read, and returns its path.
func (f *folder) write(content []byte, elements ...string) (string, error) {
	path := f.file(elements...)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("writing %s: %w", filepath.Join(elements...), err)
	}
	return path, nil
}

func (f *folder) close() error {
	defer f.owner.Close()
	if !f.temporary {
		return os.Remove(f.file(ownerFile))
	}
	return os.RemoveAll(f.path)
}

// Lock opens a file and takes the exclusive lock on it, or fails when another process holds it.
func Lock(path string, flags int) (*os.File, error) {
	file, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// removeOrphans removes the plane folders under parent that their owners left behind.
func removeOrphans(parent string) {
	folders, err := filepath.Glob(filepath.Join(parent, folderPrefix+"*"))
	if err != nil {
		return
	}
	for _, path := range folders {
		owner, err := Lock(filepath.Join(path, ownerFile), os.O_RDWR)
		if err != nil {
			continue
		}
		// Whatever cannot be removed now is left for the next start.
		_ = os.RemoveAll(path)
		_ = owner.Close()
	}
}
