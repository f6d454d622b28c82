package sample

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Name is the name of the VM if its template leaves the name to the user.
const Name = "policy-check"

// Template is a stored template; templatecache.Template implements it.
type Template interface {
	// Compiled returns the compiled template, or the error of the compilation.
	Compiled() (*template.Compiled, error)
	Metadata() *metav1.ObjectMeta
}

// assume returns values for the required parameters that have no default, and the names of those for which no value can be derived.
func assume(parameters []v1beta1.Parameter, namePattern string) (values map[string]string, missing []string) {
	values = map[string]string{}
	for _, p := range parameters {
		if !p.Required || p.Value != "" || p.Generate != "" {
			continue
		}
		switch {
		case len(p.Enum) > 0:
			values[p.Name] = p.Enum[0]
		case p.Minimum != nil:
			values[p.Name] = strconv.FormatInt(*p.Minimum, 10)
		case p.Maximum != nil:
			values[p.Name] = strconv.FormatInt(*p.Maximum, 10)
		case p.Type == v1beta1.ParameterTypeBool:
			values[p.Name] = "false"
		case (p.Type == "" || p.Type == v1beta1.ParameterTypeString) && p.Pattern == "" && strings.Contains(namePattern, "${"+p.Name+"}"):
			values[p.Name] = Name
		default:
			missing = append(missing, p.Name)
		}
	}
	return values, missing
}

// Error is why a template has no sample: the reason and the message of a condition.
type Error struct{ Reason, Message string }

// VM is the VirtualMachine of a template's defaults.
type VM struct {
	Object map[string]any
	// Objects are the other objects of the template.
	Objects []map[string]any
	// Secrets are the values of sensitive parameters in Object, and their encodings.
	Secrets []string
	// Given are the values that a user would have to give for it, Values those of all parameters.
	Given, Values map[string]string

	compiled *template.Compiled
}

// Of returns the VM of the template's defaults as it would reach the validating webhooks, without changes by other clients.
func Of(t Template) (*VM, *Error) { return With(t, nil) }

// With is Of with the given values of some parameters.
func With(t Template, given map[string]string) (*VM, *Error) {
	made, err := plain(t, given)
	if err != nil {
		return nil, err
	}
	stamp(made.Object, t.Metadata(), made.compiled, made.Given)
	return made, nil
}

// Plain returns the same VM as if a user had written it without a template: in the template's namespace, with a name, and without a
// reference to the template.
func Plain(t Template) (*VM, *Error) { return plain(t, nil) }

func plain(t Template, given map[string]string) (*VM, *Error) {
	compiled, err := t.Compiled()
	if err != nil {
		return nil, uncompiled(err)
	}
	values, missing := assume(compiled.Parameters(), compiled.NamePattern())
	if missing = slices.DeleteFunc(missing, func(name string) bool { return given[name] != "" }); len(missing) > 0 {
		return nil, required(missing)
	}
	maps.Copy(values, given)
	object, others, binding, err := render(compiled, values)
	if err != nil {
		return nil, unrendered(err)
	}
	made := &VM{Object: object, Objects: others, Given: values, Values: binding.Values(), compiled: compiled}
	for name, value := range made.Values {
		if value != "" && compiled.Sensitive(name) {
			made.Secrets = append(append(made.Secrets, template.Encodings(value)...), value)
		}
	}
	place(object, t.Metadata().Namespace)
	return made, nil
}

// Outline renders the VM with every parameter that has no default left as ${NAME}, see template.Compiled.Outline. The result is the same every time.
func Outline(t Template) (map[string]any, *Error) {
	outlines, problem := outlines(t, nil, 1)
	if problem != nil {
		return nil, problem
	}
	return outlines[0], nil
}

// maximumOutlines bounds the values that [Outlines] inserts.
const maximumOutlines = 64

// Outlines returns Outline, and one VM for each further value that a required parameter without a default can have: the values that its declaration lists,
// or the values in listed, by the name of the parameter. One parameter differs from the first VM in each; there are at most 64 in all.
func Outlines(t Template, listed map[string][]string) ([]map[string]any, *Error) {
	return outlines(t, listed, maximumOutlines)
}

func outlines(t Template, listed map[string][]string, limit int) ([]map[string]any, *Error) {
	compiled, err := t.Compiled()
	if err != nil {
		return nil, uncompiled(err)
	}
	values, open := assume(compiled.Parameters(), "")
	sets := []map[string]string{values}
	add := func(name string, further []string) {
		for _, value := range further {
			other := maps.Clone(values)
			other[name] = value
			sets = append(sets, other)
		}
	}
	for _, p := range compiled.Parameters() {
		if _, assumed := values[p.Name]; assumed && len(p.Enum) > 0 {
			add(p.Name, p.Enum[1:])
		}
	}
	for _, name := range open {
		add(name, listed[name])
	}
	var all []map[string]any
	for _, set := range sets[:min(limit, len(sets))] {
		rendered, err := compiled.Outline(set)
		if err != nil {
			return nil, unrendered(err)
		}
		all = append(all, rendered.Object())
	}
	return all, nil
}

// Open returns the names of the required parameters that have neither a default nor a list of values.
func Open(compiled *template.Compiled) []string {
	_, open := assume(compiled.Parameters(), "")
	return open
}

func uncompiled(err error) *Error {
	return &Error{v1beta1.ReasonNotRendered, fmt.Sprintf("the template does not compile: %v", err)}
}

func required(missing []string) *Error {
	return &Error{v1beta1.ReasonParametersRequired, fmt.Sprintf("no VirtualMachine can be rendered from its defaults: required parameters have neither a default nor a list of values: %s", strings.Join(missing, ", "))}
}

func unrendered(err error) *Error {
	return &Error{v1beta1.ReasonNotRendered, fmt.Sprintf("its defaults make no VirtualMachine: %v", err)}
}

func render(compiled *template.Compiled, values map[string]string) (object map[string]any, others []map[string]any, binding *template.Binding, err error) {
	if binding, err = compiled.Bind(values); err != nil {
		return nil, nil, nil, err
	}
	rendered, err := compiled.Render(binding)
	if err != nil {
		return nil, nil, nil, err
	}
	if list := rendered.Objects(); list != nil {
		if err = json.Unmarshal(list, &others); err != nil {
			return nil, nil, nil, err
		}
	}
	object, err = machine.Decode(bytes.Clone(rendered.JSON()))
	return object, others, binding, err
}

// place sets the VM's namespace, and its name if it has none.
func place(object map[string]any, namespace string) {
	metadata := mapAt(object, "metadata")
	metadata["namespace"] = namespace
	if machine.StringAt(metadata, "name") == "" {
		metadata["name"] = machine.StringAt(metadata, "generateName") + Name
	}
}

// stamp sets the metadata that the render webhook would set.
func stamp(object map[string]any, t *metav1.ObjectMeta, compiled *template.Compiled, values map[string]string) {
	metadata := mapAt(object, "metadata")
	record := machine.Record{Namespace: t.Namespace, Name: t.Name, UID: t.UID, Generation: t.Generation, Digest: compiled.Digest()}
	annotations := mapAt(metadata, "annotations")
	annotations[contract.AnnotationTemplateRef] = t.Namespace + "/" + t.Name
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if compiled.Sensitive(name) {
			record.Sensitive = append(record.Sensitive, name)
		} else {
			annotations[contract.AnnotationParameterPrefix+name] = values[name]
		}
	}
	annotations[contract.AnnotationRendered] = record.String()
	labels := mapAt(metadata, "labels")
	for key, value := range record.Labels() {
		labels[key] = value
	}
}

// mapAt returns the map under a key, and creates it if there is none.
func mapAt(in map[string]any, key string) map[string]any {
	m, ok := in[key].(map[string]any)
	if !ok {
		m = map[string]any{}
		in[key] = m
	}
	return m
}
