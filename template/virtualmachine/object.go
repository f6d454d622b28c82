package virtualmachine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	contract "github.com/vmstencil/stencil/api/template"
)

// Decode decodes one JSON object. Numbers retain their digits, as json.Number.
func Decode(raw []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var o map[string]any
	if err := decoder.Decode(&o); err != nil {
		return nil, fmt.Errorf("decoding the object: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("decoding the object: something follows it")
	}
	return o, nil
}

// mapAt returns the map under key; nil if it is absent or null, and an error if it is no map.
func mapAt(in map[string]any, path *field.Path, key string) (map[string]any, *field.Error) {
	switch value := in[key].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return value, nil
	default:
		return nil, field.TypeInvalid(path.Child(key), fmt.Sprintf("%T", value), "must be an object")
	}
}

// Object is a requested or stored VirtualMachine, split into its parts. The maps are those of the decoded object.
type Object struct {
	Object              map[string]any
	Metadata            map[string]any
	Labels, Annotations map[string]any
	Spec                map[string]any
}

// Read splits a decoded object into its parts. Each part that exists and is no object is an error.
func Read(o map[string]any) (Object, field.ErrorList) {
	s := Object{Object: o}
	var errs field.ErrorList
	take := func(in map[string]any, path *field.Path, key string) map[string]any {
		m, err := mapAt(in, path, key)
		if err != nil {
			errs = append(errs, err)
		}
		return m
	}
	s.Metadata = take(o, nil, "metadata")
	metadata := field.NewPath("metadata")
	s.Labels = take(s.Metadata, metadata, "labels")
	s.Annotations = take(s.Metadata, metadata, "annotations")
	s.Spec = take(o, nil, "spec")
	return s, errs
}

// Name returns metadata.name, empty if there is none.
func (m Object) Name() string { return StringAt(m.Metadata, "name") }

// GenerateName returns metadata.generateName, empty if there is none.
func (m Object) GenerateName() string { return StringAt(m.Metadata, "generateName") }

// Reference returns the text of the annotation that references the template, and whether it exists.
func (m Object) Reference() (written string, found bool) {
	value, found := m.Annotations[contract.AnnotationTemplateRef]
	written, _ = value.(string)
	return written, found
}

// Parameters returns the values of the parameter annotations, by parameter.
func (m Object) Parameters() map[string]string {
	values := map[string]string{}
	for key, value := range m.Annotations {
		if name, found := strings.CutPrefix(key, contract.AnnotationParameterPrefix); found {
			values[name], _ = value.(string)
		}
	}
	return values
}

// StringAt returns the string under a key, empty if there is none.
func StringAt(in map[string]any, key string) string {
	value, _ := in[key].(string)
	return value
}

// MapAt returns the map at the end of a path of keys, nil if there is none.
func MapAt(in map[string]any, path ...string) map[string]any {
	for _, key := range path {
		in, _ = in[key].(map[string]any)
	}
	return in
}

// MapsAt returns the maps in the list under a key, in their order. It skips other values.
func MapsAt(in map[string]any, key string) []map[string]any {
	list, _ := in[key].([]any)
	var found []map[string]any
	for _, item := range list {
		if one, is := item.(map[string]any); is {
			found = append(found, one)
		}
	}
	return found
}

// Fingerprint returns an identifier of a JSON value: 64 bits of the SHA-256 of its canonical form, in hexadecimal. It serves
// to recognise a value, not as protection against forgery.
func Fingerprint(value any) string {
	raw, err := json.Marshal(value) // sorts keys
	if err != nil {
		// The value was decoded from JSON.
		panic(fmt.Sprintf("encoding a decoded JSON value: %v", err))
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
