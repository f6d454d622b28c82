package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
)

// DiskName is the name of the file of a claim's disk in a folder.
func DiskName(claim string) string { return claim + ".raw" }

// ManifestIn returns the path of the one manifest in a folder.
func ManifestIn(folder string) (string, error) {
	manifests, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return "", cli.Internal(err)
	}
	if len(manifests) != 1 {
		return "", cli.Usage(fmt.Errorf("%s has %s; want one file NAME.yaml with a VirtualMachineTemplate", folder, cli.Count(len(manifests), "manifest", "manifests")))
	}
	return manifests[0], nil
}

// TemplateIn reads the one template that the manifests of a folder hold.
func TemplateIn(folder string) (*templates.Template, error) {
	manifest, err := ManifestIn(folder)
	if err != nil {
		return nil, err
	}
	return templates.Read(&source.Reader{}, manifest)
}

// Folder is a folder that a command writes.
type Folder struct {
	Streams cli.Streams
	Path    string
	// Quiet means that the names of files are not printed.
	Quiet bool
	// Written are the paths of the files.
	Written []string
}

// NewFolder creates a folder, and its parents. What exists already is an error, so that nothing is overwritten.
func NewFolder(path string) error {
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.Mkdir(path, 0o755)
	}
	if err != nil {
		return cli.Usage(err)
	}
	return nil
}

// inFolder returns the path of a file in a folder. The name must not lead elsewhere: files are named after objects of packages and templates that
// others have made.
func inFolder(folder, name string) (string, error) {
	if name != filepath.Base(name) || !filepath.IsLocal(name) {
		return "", cli.Usage(fmt.Errorf("%q is no name of a file in %s", name, folder))
	}
	return filepath.Join(folder, name), nil
}

// OpenDisk opens the file of a claim's disk in a folder.
func OpenDisk(folder, claim string) (*os.File, error) {
	path, err := inFolder(folder, DiskName(claim))
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// File writes a new file in the folder, and prints its path.
func (f *Folder) File(name string, write func(file *os.File) error) error {
	path, err := inFolder(f.Path, name)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return err
	}
	f.Written = append(f.Written, path)
	if !f.Quiet {
		fmt.Fprintln(f.Streams.Out, path)
	}
	return nil
}

// Quantity prints a number of bytes. A negative one is not known.
func Quantity(count int64) string {
	if count < 0 {
		return "unknown"
	}
	return resource.NewQuantity(count, resource.BinarySI).String()
}
