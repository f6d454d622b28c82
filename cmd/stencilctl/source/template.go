package source

import (
	"fmt"
	"strings"

	"sigs.k8s.io/json"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// kindTemplate is the kind of templates.
const kindTemplate = "VirtualMachineTemplate"

// IsTemplate reports whether the object is a VirtualMachineTemplate, in any version.
func (o *Object) IsTemplate() bool {
	version, _ := o.Content["apiVersion"].(string)
	return o.Kind == kindTemplate && strings.HasPrefix(version, v1beta1.GroupVersion.Group+"/")
}

// IsVirtualMachine reports whether the object is a VirtualMachine.
func (o *Object) IsVirtualMachine() bool {
	version, _ := o.Content["apiVersion"].(string)
	return o.Kind == "VirtualMachine" && strings.HasPrefix(version, "kubevirt.io/")
}

// Template decodes the object as a template. The versions of the API differ only in their
// names. Unknown fields are returned as errors.
func (o *Object) Template() (template *v1beta1.VirtualMachineTemplate, unknown []error, err error) {
	template = &v1beta1.VirtualMachineTemplate{}
	unknown, err = json.UnmarshalStrict(o.Raw, template)
	if err != nil {
		return nil, nil, cli.Usage(fmt.Errorf("%s: %s: %w", o.document.place(), o, err))
	}
	return template, unknown, nil
}

// One reads the only object that accept selects; what is its name in messages.
func (r *Reader) One(path, what string, accept func(*Object) bool) (*Object, error) {
	objects, err := r.Objects([]string{path})
	if err != nil {
		return nil, err
	}
	var found []*Object
	for i := range objects {
		if accept(&objects[i]) {
			found = append(found, &objects[i])
		}
	}
	if len(found) != 1 {
		name := path
		if path == Stdin {
			name = StdinName
		}
		return nil, cli.Usage(fmt.Errorf("%s holds %s, want one", name, cli.Count(len(found), what, what+"s")))
	}
	return found[0], nil
}
