package source

import (
	"fmt"
	"slices"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// File is a file with Rego in it.
type File struct {
	Name    string
	Content []byte
	Modules []Module
}

// Module is one module of a File, a test or a policy.
type Module struct {
	// Policy is the name of the policy that contains it, empty for a Rego file.
	Policy string
	Source string
	// InManifest means that it is a field of a manifest.
	InManifest bool

	placement placement
}

// Locate is like Policy.Locate.
func (m *Module) Locate(row, column int) (fileRow, fileColumn int, known bool) {
	return row + m.placement.row, column + m.placement.column, m.placement.known
}

// Files reads the files with Rego at the given paths.
func (r *Reader) Files(paths []string) ([]File, error) {
	read, err := r.files(paths)
	if err != nil {
		return nil, err
	}
	var files []File
	for _, f := range read {
		file := File{Name: f.name, Content: f.content}
		// The standard input may be either: a manifest begins with a key.
		if f.rego() || f.name == StdinName && packageOf(string(f.content)) != "" {
			file.Modules = []Module{{Source: string(f.content), placement: whole}}
		} else {
			policies, err := r.policies(f)
			if err != nil {
				return nil, err
			}
			for _, policy := range policies {
				file.Modules = append(file.Modules, Module{
					Policy: policy.Name(), Source: policy.Spec.Definition.Source, InManifest: true, placement: policy.placement,
				})
			}
		}
		switch {
		case len(file.Modules) > 0:
			files = append(files, file)
		case !f.found:
			return nil, cli.Usage(fmt.Errorf("%s holds no %s", f.name, kindPolicy))
		}
	}
	return files, nil
}

// WithModules returns the content of the file with its modules replaced; nothing else changes. A
// module without a known placement must not change.
func (f *File) WithModules(modules []string) []byte {
	content := slices.Clone(f.Content)
	// From the end, so that earlier rows do not shift.
	for i, module := range slices.Backward(f.Modules) {
		if module.Source != modules[i] {
			content = module.placement.replace(content, module.Source, modules[i])
		}
	}
	return content
}
