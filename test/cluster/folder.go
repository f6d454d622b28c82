package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/vmstencil/stencil/test/cluster/node"
	"github.com/vmstencil/stencil/test/controlplane"
)

// folderPrefix begins the names of clusters' folders, and ownerFile is the file in it that the owner of the cluster holds locked.
const (
	folderPrefix = "stencil-cluster-"
	ownerFile    = "owner"
)

// folder is the folder of a cluster.
type folder struct {
	path  string
	owner *os.File
}

func newFolder() (*folder, error) {
	path, err := os.MkdirTemp("", folderPrefix)
	if err != nil {
		return nil, fmt.Errorf("creating the folder of the cluster: %w", err)
	}
	owner, err := controlplane.Lock(filepath.Join(path, ownerFile), os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking the folder of the cluster: %w", err), os.RemoveAll(path))
	}
	return &folder{path: path, owner: owner}, nil
}

// id is the part of the folder's name that other folders do not have.
func (f *folder) id() string { return strings.TrimPrefix(filepath.Base(f.path), folderPrefix) }

func (f *folder) remove() error { return errors.Join(os.RemoveAll(f.path), f.owner.Close()) }

// removeOrphans removes the folders and the control groups of clusters whose owners were killed.
func removeOrphans(parent string) {
	folders, err := filepath.Glob(filepath.Join(parent, folderPrefix+"*"))
	if err != nil {
		return
	}
	for _, path := range folders {
		owner, err := controlplane.Lock(filepath.Join(path, ownerFile), os.O_RDWR)
		if err != nil {
			continue
		}
		orphan := &folder{path: path, owner: owner}
		// The next start removes the rest.
		if err := (node.Config{Folder: path, ID: orphan.id()}).RemoveGroups(); err == nil {
			_ = orphan.remove()
		}
		_ = owner.Close()
	}
}
