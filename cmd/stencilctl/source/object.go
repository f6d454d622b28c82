package source

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Object is an object of any kind in a file.
type Object struct {
	File string
	Kind string
	// Raw is its JSON, Content the same decoded as in the webhooks: numbers are json.Number.
	Raw     []byte
	Content map[string]any

	document document
}

// Namespace returns the namespace in its metadata.
func (o *Object) Namespace() string { return o.metadata("namespace") }

// Name returns the name in its metadata.
func (o *Object) Name() string { return o.metadata("name") }

// ShownName returns the name for messages, also of an object whose name is generated.
func (o *Object) ShownName() string { return cli.Named(o.Name(), o.metadata("generateName")) }

func (o *Object) metadata(key string) string {
	metadata, _ := o.Content["metadata"].(map[string]any)
	return machine.StringAt(metadata, key)
}

// String identifies the object in messages.
func (o *Object) String() string {
	name := o.ShownName()
	if namespace := o.Namespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return o.Kind + " " + name
}

// Objects reads all objects at the given paths.
func (r *Reader) Objects(paths []string) ([]Object, error) {
	files, err := r.files(paths)
	if err != nil {
		return nil, err
	}
	var objects []Object
	for _, f := range files {
		if f.rego() && f.found {
			continue
		}
		found, err := documents(f)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 && !f.found {
			return nil, cli.Usage(fmt.Errorf("%s holds no object", f.name))
		}
		for _, d := range found {
			content, err := machine.Decode(d.json)
			if err != nil {
				return nil, cli.Usage(fmt.Errorf("%s: %w", d.place(), err))
			}
			objects = append(objects, Object{File: f.name, Kind: d.kind, Raw: d.json, Content: content, document: d})
		}
	}
	return objects, nil
}

// Values reads a file that holds one JSON or YAML object of any shape, such as the parameters
// of a policy. Integers are int64.
func (r *Reader) Values(path string) (map[string]any, error) {
	objects, err := r.Objects([]string{path})
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 {
		return nil, cli.Usage(fmt.Errorf("%s holds %d objects, want one", path, len(objects)))
	}
	var values map[string]any
	if err := json.Unmarshal(objects[0].Raw, &values); err != nil {
		return nil, cli.Usage(fmt.Errorf("%s: %w", path, err))
	}
	return values, nil
}
