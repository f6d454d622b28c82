package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// object is a decoded VirtualMachine. Numbers are kept as they were written.
type object map[string]any

func decode(raw []byte) (object, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var o object
	if err := decoder.Decode(&o); err != nil {
		return nil, fmt.Errorf("decoding the object: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("decoding the object: something follows it")
	}
	return o, nil
}

// mapAt returns the map under key; nil when it is absent or null, and an error
// when something else stands there.
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

// submitted is what is read of a VirtualMachine that somebody sent or that is
// stored: its parts that this webhook looks at, taken out once.
type submitted struct {
	metadata            map[string]any
	labels, annotations map[string]any
	spec                map[string]any
}

func read(o object) (submitted, field.ErrorList) {
	var s submitted
	var errs field.ErrorList
	take := func(in map[string]any, path *field.Path, key string) map[string]any {
		m, err := mapAt(in, path, key)
		if err != nil {
			errs = append(errs, err)
		}
		return m
	}
	s.metadata = take(o, nil, "metadata")
	metadata := field.NewPath("metadata")
	s.labels = take(s.metadata, metadata, "labels")
	s.annotations = take(s.metadata, metadata, "annotations")
	s.spec = take(o, nil, "spec")
	return s, errs
}

func (s submitted) name() string         { return stringAt(s.metadata, "name") }
func (s submitted) generateName() string { return stringAt(s.metadata, "generateName") }

func stringAt(in map[string]any, key string) string {
	value, _ := in[key].(string)
	return value
}

// fingerprint identifies a JSON value: 64 bits of the SHA-256 of its canonical
// form, in hexadecimal. It recognises what was seen before and guards nothing.
func fingerprint(value any) string {
	raw, err := json.Marshal(value) // sorts keys
	if err != nil {
		// Only values that were decoded from JSON come here.
		panic(fmt.Sprintf("encoding a decoded JSON value: %v", err))
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
