// Package templates holds the operations of commands on VirtualMachineTemplates: read them from
// a file or from a cluster, compile and render them with the engine of the webhooks, and
// describe their errors and parameters.
package templates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Template is a template that a command works with.
type Template struct {
	Object   *v1beta1.VirtualMachineTemplate
	Compiled *template.Compiled
	// From identifies it in messages: its file, or its namespace and name.
	From string
}

// Read reads the one template that a file holds.
func Read(reader *source.Reader, path string) (*Template, error) {
	object, err := reader.One(path, "VirtualMachineTemplate", (*source.Object).IsTemplate)
	if err != nil {
		return nil, err
	}
	read, unknown, err := object.Template()
	if err != nil {
		return nil, err
	}
	from := object.File
	if len(unknown) > 0 {
		text := fmt.Sprintf("the template in %s is not valid:", from)
		for _, each := range unknown {
			text += "\n  " + each.Error()
		}
		return nil, cli.Usage(errors.New(text))
	}
	return compile(read, "in "+from)
}

// Get reads a template from a cluster.
func Get(ctx context.Context, client *cluster.Client, at machine.Reference) (*Template, error) {
	object, err := client.Get(ctx, cluster.VirtualMachineTemplate, at.Namespace, at.Name)
	if err != nil {
		return nil, cluster.Failed("reading template "+at.String(), err)
	}
	if object == nil {
		return nil, client.Absent(ctx, at.Namespace, fmt.Errorf("template %s does not exist", at))
	}
	var read v1beta1.VirtualMachineTemplate
	if err := Decode(object, &read); err != nil {
		return nil, cli.Cluster(fmt.Errorf("reading template %s: %w", at, err))
	}
	return compile(&read, at.String())
}

// Decode converts decoded JSON to a type, or a value of a type to decoded JSON.
func Decode(object, into any) error {
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

func compile(object *v1beta1.VirtualMachineTemplate, from string) (*Template, error) {
	compiled, err := template.Compile(object)
	if err != nil {
		return nil, cli.Usage(Listed(fmt.Sprintf("the template %s is not valid", from), err))
	}
	return &Template{Object: object, Compiled: compiled, From: from}, nil
}

// Rendered is what a template makes.
type Rendered struct {
	VM map[string]any
	// Objects are the other objects.
	Objects []any
	Message string
}

// Render renders the template. If at is not nil, the VirtualMachine refers to the template there, as one that the cluster
// has processed. The error is about the values, or about their effect on the VirtualMachine and the other objects.
func (t *Template) Render(values map[string]string, at *machine.Reference) (*Rendered, error) {
	binding, err := t.Compiled.Bind(values)
	if err != nil {
		return nil, cli.Usage(Listed(fmt.Sprintf("the template %s cannot be processed", t.From), err))
	}
	rendered, err := t.Compiled.Render(binding)
	if err != nil {
		return nil, cli.Usage(Listed(fmt.Sprintf("the template %s cannot be processed", t.From), err))
	}
	made := &Rendered{Message: rendered.Message()}
	vm := rendered.JSON()
	if at != nil {
		if vm, err = machine.Referring(vm, t.Compiled, *at, values); err != nil {
			return nil, cli.Internal(err)
		}
	}
	if made.VM, err = machine.Decode(vm); err != nil {
		return nil, cli.Internal(err)
	}
	if objects := rendered.Objects(); objects != nil {
		list, err := machine.Decode(fmt.Appendf(nil, `{"items":%s}`, objects))
		if err != nil {
			return nil, cli.Internal(err)
		}
		made.Objects, _ = list["items"].([]any)
	}
	return made, nil
}

// Unused returns the given parameters that have no effect.
func (t *Template) Unused(values map[string]string) []string {
	return slices.DeleteFunc(t.Compiled.Unused(), func(name string) bool {
		_, given := values[name]
		return !given
	})
}

// Listed formats an error of the engine with each cause on its own line.
func Listed(what string, err error) error {
	var invalid *template.InvalidError
	if !errors.As(err, &invalid) {
		return fmt.Errorf("%s: %w", what, err)
	}
	var text strings.Builder
	text.WriteString(what + ":")
	for _, cause := range invalid.Causes {
		text.WriteString("\n  " + cause.Error())
	}
	return errors.New(text.String())
}

// Templates and subresources of them.
var (
	// Subresources is the API that processes templates.
	Subresources = schema.GroupVersionResource{Group: "subresources.template.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinetemplates"}
)

// causeAt returns the detail of the cause at a path, or "".
func causeAt(err error, place string) string {
	var invalid *template.InvalidError
	if !errors.As(err, &invalid) {
		return ""
	}
	for _, cause := range invalid.Causes {
		if cause.Field == place {
			return cause.Detail
		}
	}
	return ""
}
