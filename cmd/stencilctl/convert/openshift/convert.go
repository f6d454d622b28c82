package openshift

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template/plain"
)

// Group is the API group of Templates, and Kind their kind.
const (
	Group = "template.openshift.io"
	Kind  = "Template"
)

// Options change how a Template is read.
type Options struct {
	// Parentheses means that placeholders are written $(NAME), and $((NAME)) for a whole value.
	Parentheses bool
}

// Note reports a part that the conversion changes.
type Note struct {
	// Path is the path in the Template, such as objects[0].metadata.finalizers.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	// Loss means that a part of the Template is lost, and not only written in another way.
	Loss bool `json:"loss,omitempty"`
}

// String returns the note on one line.
func (n Note) String() string {
	if n.Path == "" {
		return n.Message
	}
	return n.Path + ": " + n.Message
}

// RejectedError lists why a Template cannot be converted.
type RejectedError struct {
	Causes []Note
}

// Error lists all causes.
func (e *RejectedError) Error() string {
	texts := make([]string, len(e.Causes))
	for i, cause := range e.Causes {
		texts[i] = cause.String()
	}
	return strings.Join(texts, "; ")
}

// Is reports whether decoded JSON is a Template.
func Is(object map[string]any) bool {
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	// Templates of OpenShift 3 have no group.
	return kind == Kind && (strings.HasPrefix(version, Group+"/") || version == "v1")
}

// Convert converts a Template, as decoded JSON, to a VirtualMachineTemplate. The Template is
// not modified. The notes list what was changed. The error is a *RejectedError.
func Convert(template map[string]any, options Options) (*v1beta1.VirtualMachineTemplate, []Note, error) {
	c := conversion{options: options}
	out := c.convert(clone(template).(map[string]any))
	if len(c.rejected) > 0 {
		return nil, nil, &RejectedError{Causes: c.rejected}
	}
	return out, c.notes, nil
}

type conversion struct {
	options Options
	// declared are the names of the parameters.
	declared map[string]bool
	// dollar is the name of the parameter that holds a dollar sign, and usesDollar reports whether there has to be one.
	dollar     string
	usesDollar bool
	// retained are the undeclared parameters with references that were already reported.
	retained map[string]bool
	// index is the index of the VirtualMachine among the objects.
	index    int
	notes    []Note
	rejected []Note
}

func (c *conversion) note(path, format string, arguments ...any) {
	c.notes = append(c.notes, Note{Path: path, Message: fmt.Sprintf(format, arguments...)})
}

func (c *conversion) lose(path, format string, arguments ...any) {
	c.notes = append(c.notes, Note{Path: path, Message: fmt.Sprintf(format, arguments...), Loss: true})
}

func (c *conversion) reject(path, format string, arguments ...any) {
	c.rejected = append(c.rejected, Note{Path: path, Message: fmt.Sprintf(format, arguments...), Loss: true})
}

func (c *conversion) convert(object map[string]any) *v1beta1.VirtualMachineTemplate {
	out := &v1beta1.VirtualMachineTemplate{
		TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "VirtualMachineTemplate"},
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "objects", "parameters", "labels", "message"}, key) {
			c.lose(key, "a VirtualMachineTemplate has nothing like it")
		}
	}
	out.Spec.Parameters = c.parameters(object["parameters"])
	objects, _ := object["objects"].([]any)
	if c.vm(objects) == nil {
		return nil
	}
	c.others(objects)
	c.metadata(object["metadata"], out)
	out.Spec.ObjectLabels = c.labels(object["labels"], objects)
	for i, each := range objects {
		at := fmt.Sprintf("objects[%d]", i)
		raw, err := json.Marshal(c.rewrite(each, at))
		if err != nil {
			c.reject(at, "it cannot be written as JSON: %v", err)
			return nil
		}
		if i == c.index {
			out.Spec.VirtualMachine = &runtime.RawExtension{Raw: raw}
		} else {
			out.Spec.Objects = append(out.Spec.Objects, runtime.RawExtension{Raw: raw})
		}
	}
	message, _ := object["message"].(string)
	out.Spec.Message = c.text(message, "message", false)
	if c.usesDollar {
		out.Spec.Parameters = append(out.Spec.Parameters, plain.Parameter(c.dollar))
	}
	return out
}

// others prepares the objects besides the VirtualMachine. Those that a template cannot hold are
// rejected when the result is compiled.
func (c *conversion) others(objects []any) {
	for i, item := range objects {
		if i == c.index {
			continue
		}
		at := fmt.Sprintf("objects[%d]", i)
		object, isObject := item.(map[string]any)
		if !isObject {
			c.reject(at, "must be an object")
			continue
		}
		c.object(object, at, "the object is created in the namespace of the VirtualMachine")
	}
	if len(objects) > 1 {
		c.note("objects", "those besides the VirtualMachine become spec.objects, and are created with each VirtualMachine by the rights of its creator; kinds that the chart's value objects.resources does not list are denied")
	}
}

// parameters converts the parameters of the Template.
func (c *conversion) parameters(written any) []v1beta1.Parameter {
	c.declared, c.retained = map[string]bool{}, map[string]bool{}
	list, _ := written.([]any)
	var parameters []v1beta1.Parameter
	for i, item := range list {
		at := fmt.Sprintf("parameters[%d]", i)
		object, isObject := item.(map[string]any)
		if !isObject {
			c.reject(at, "must be an object")
			continue
		}
		p := v1beta1.Parameter{
			Name: scalar(object["name"]), DisplayName: scalar(object["displayName"]), Description: scalar(object["description"]),
			Value: scalar(object["value"]), Generate: scalar(object["generate"]), From: scalar(object["from"]),
			Required: scalar(object["required"]) == "true",
		}
		if p.Multiline = strings.Contains(p.Value, "\n"); p.Multiline {
			c.note(at, "gets multiline: true, because the value of %s has a line break", p.Name)
		}
		for _, key := range slices.Sorted(maps.Keys(object)) {
			if !slices.Contains([]string{"name", "displayName", "description", "value", "generate", "from", "required"}, key) {
				c.lose(at+"."+key, "a parameter has nothing like it")
			}
		}
		if p.Value != "" && p.Generate != "" {
			// With a value, neither language generates one.
			c.note(at+".generate", "is left out: %s has a value", p.Name)
			p.Generate, p.From = "", ""
		}
		c.declared[p.Name] = true
		parameters = append(parameters, p)
	}
	for c.dollar = plain.Dollar; c.declared[c.dollar]; {
		c.dollar += "_"
	}
	return parameters
}

// metadata copies the metadata of the Template, without the fields of the stored object.
func (c *conversion) metadata(written any, out *v1beta1.VirtualMachineTemplate) {
	metadata, _ := written.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		switch key {
		case "name":
			out.Name = scalar(metadata[key])
		case "generateName":
			out.GenerateName = scalar(metadata[key])
		case "namespace":
			c.note("metadata.namespace", "is left out: kubectl apply -n, or -n beside -f here, chooses one")
		case "labels":
			out.Labels = texts(metadata[key])
		case "annotations":
			out.Annotations = c.annotations(texts(metadata[key]))
		case "creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid":
		default:
			c.lose("metadata."+key, "it belongs to the stored Template")
		}
	}
}

// texts reads a map of strings.
func texts(written any) map[string]string {
	object, _ := written.(map[string]any)
	if len(object) == 0 {
		return nil
	}
	read := make(map[string]string, len(object))
	for key, value := range object {
		read[key] = scalar(value)
	}
	return read
}

// scalar returns a string, number or bool as a string: YAML parses unquoted text as numbers.
func scalar(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	default:
		return fmt.Sprint(value)
	}
}

func clone(value any) any {
	switch value := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(value))
		for key, each := range value {
			copied[key] = clone(each)
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for i, each := range value {
			copied[i] = clone(each)
		}
		return copied
	default:
		return value
	}
}
