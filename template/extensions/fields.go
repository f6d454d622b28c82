// Package extensions keeps the fields of a VirtualMachineTemplate that the published API lacks, for clients that drop fields which they do
// not have: an annotation holds a copy. Decide restores them where a write has none.
package extensions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// PublishedTemplate and PublishedParameter return the fields of the specification and of its parameters in the published API
// (kubevirt.io/virt-template-api). Every other field is an extension, also one that is added to the types later.
func PublishedTemplate() []string { return []string{"virtualMachine", "parameters", "message"} }

// PublishedParameter is described with PublishedTemplate.
func PublishedParameter() []string {
	return []string{"name", "displayName", "description", "value", "generate", "from", "required"}
}

// Object is a template as it is written: decoded JSON with exact numbers.
type Object struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec map[string]any `json:"spec"`
}

// Read decodes a template.
func Read(raw []byte) (*Object, error) {
	object := &Object{}
	if err := decode(raw, object); err != nil {
		return nil, fmt.Errorf("decoding the template: %w", err)
	}
	return object, nil
}

func decode(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// Extensions are the fields of a template that the published API lacks, as decoded JSON.
type Extensions struct {
	Template map[string]any `json:"template,omitempty"`
	// Parameters are the fields by the names of the parameters.
	Parameters map[string]map[string]any `json:"parameters,omitempty"`
}

// Extract returns the extensions of a specification. A field with the zero value of its type is none, but a number is.
func Extract(spec map[string]any) Extensions {
	e := Extensions{Template: own(spec, PublishedTemplate())}
	for _, parameter := range parameters(spec) {
		name, _ := parameter["name"].(string)
		fields := own(parameter, PublishedParameter())
		if len(fields) == 0 {
			continue
		}
		if e.Parameters == nil {
			e.Parameters = map[string]map[string]any{}
		}
		e.Parameters[name] = fields
	}
	return e
}

func own(object map[string]any, published []string) map[string]any {
	var fields map[string]any
	for key, value := range object {
		if slices.Contains(published, key) || empty(value) {
			continue
		}
		if fields == nil {
			fields = map[string]any{}
		}
		fields[key] = value
	}
	return fields
}

// empty reports whether a field with the value means the same as none. A minimum of zero does not.
func empty(value any) bool {
	if _, number := value.(json.Number); number || value == nil {
		return value == nil
	}
	v := reflect.ValueOf(value)
	return v.IsZero() || (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0
}

// parameters returns the parameters of a specification, nil for an item that is none: each has its index in the list.
func parameters(spec map[string]any) []map[string]any {
	list, _ := spec["parameters"].([]any)
	all := make([]map[string]any, len(list))
	for i, item := range list {
		all[i], _ = item.(map[string]any)
	}
	return all
}

// Empty reports whether there are none.
func (e Extensions) Empty() bool { return len(e.Template) == 0 && len(e.Parameters) == 0 }

// Fitting returns the extensions without those of parameters that a specification does not have.
func (e Extensions) Fitting(spec map[string]any) Extensions {
	fitting := Extensions{Template: e.Template}
	for _, parameter := range parameters(spec) {
		name, _ := parameter["name"].(string)
		if fields := e.Parameters[name]; len(fields) > 0 {
			if fitting.Parameters == nil {
				fitting.Parameters = map[string]map[string]any{}
			}
			fitting.Parameters[name] = fields
		}
	}
	return fitting
}

// Into adds the extensions to a specification.
func (e Extensions) Into(spec map[string]any) {
	maps.Copy(spec, e.Template)
	for _, parameter := range parameters(spec) {
		name, _ := parameter["name"].(string)
		if parameter != nil {
			maps.Copy(parameter, e.Parameters[name])
		}
	}
}

// Field is a field at a JSON pointer.
type Field struct {
	Pointer string
	Value   any
}

// Fields returns the extensions at their places in a specification that has the parameters, in a fixed order.
func (e Extensions) Fields(spec map[string]any) []Field {
	var all []Field
	add := func(prefix string, fields map[string]any) {
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			all = append(all, Field{prefix + key, fields[key]})
		}
	}
	add("/spec/", e.Template)
	for i, parameter := range parameters(spec) {
		name, _ := parameter["name"].(string)
		add(fmt.Sprintf("/spec/parameters/%d/", i), e.Parameters[name])
	}
	return all
}

// maxNamed is the number of fields that a message names: the API server truncates warnings.
const maxNamed = 6

// String names the fields without their values, which may be secret.
func (e Extensions) String() string {
	var names []string
	for _, key := range slices.Sorted(maps.Keys(e.Template)) {
		names = append(names, "spec."+key)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Parameters)) {
		for _, key := range slices.Sorted(maps.Keys(e.Parameters[name])) {
			names = append(names, fmt.Sprintf("spec.parameters[%.40s].%s", name, key))
		}
	}
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}
