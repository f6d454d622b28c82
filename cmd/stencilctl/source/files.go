package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// Stdin is the path that stands for the standard input, StdinName its name in messages.
const (
	Stdin     = "-"
	StdinName = "<stdin>"
)

// maxFileBytes is how much of a file is read. The limit of the API server is lower.
const maxFileBytes = 16 << 20

// Reader reads files.
type Reader struct {
	// In is the standard input.
	In io.Reader
	// Parameters and Kinds apply to policies that are plain Rego modules.
	Parameters map[string]any
	Kinds      []string
}

// file is a file and its content.
type file struct {
	name    string
	content []byte
	// found means that the file was found in a folder, so that it need not contain relevant
	// objects.
	found bool
}

func (f file) extension() string { return strings.ToLower(filepath.Ext(f.name)) }

func (f file) rego() bool { return f.extension() == ".rego" }

func (f file) test() bool { return strings.HasSuffix(strings.ToLower(f.name), testSuffix) }

const testSuffix = "_test.rego"

var extensions = []string{".yaml", ".yml", ".json", ".rego"}

// files reads the given paths. A folder stands for all files below it, sorted by name.
func (r *Reader) files(paths []string) ([]file, error) {
	var all []file
	for _, path := range paths {
		if path == Stdin {
			content, err := read(r.In, StdinName)
			if err != nil {
				return nil, err
			}
			all = append(all, file{name: StdinName, content: content})
			continue
		}
		names, folder, err := expand(path)
		if err != nil {
			return nil, cli.Usage(err)
		}
		for _, name := range names {
			content, err := readFile(name)
			if err != nil {
				return nil, err
			}
			all = append(all, file{name: name, content: content, found: folder})
		}
	}
	return all, nil
}

// Content reads one file unchanged.
func (r *Reader) Content(path string) ([]byte, error) {
	if path == Stdin {
		return read(r.In, StdinName)
	}
	return readFile(path)
}

func expand(path string) (names []string, folder bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, false, err
	}
	if !info.IsDir() {
		return []string{path}, false, nil
	}
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != path && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case !entry.IsDir() && slices.Contains(extensions, strings.ToLower(filepath.Ext(name))):
			names = append(names, name)
		}
		return nil
	})
	return names, true, err
}

func readFile(name string) ([]byte, error) {
	opened, err := os.Open(name)
	if err != nil {
		return nil, cli.Usage(err)
	}
	content, err := read(opened, name)
	return content, errors.Join(err, opened.Close())
}

func read(from io.Reader, name string) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(from, maxFileBytes+1))
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("reading %s: %w", name, err))
	}
	if len(content) > maxFileBytes {
		return nil, cli.Usage(fmt.Errorf("%s is longer than %d MiB", name, maxFileBytes>>20))
	}
	return content, nil
}
